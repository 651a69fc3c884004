"""CRDs that Kubernetes takes and refuses."""

import copy
import json
from typing import Any

from tests.unit.kube_simulator.schema.schema_parts import (
    EITHER,
    EMBEDDED,
    INTEGER,
    OPEN,
    TEXT,
    Json,
    a_list,
    an_object,
    by_keys,
    crd,
    merged,
    rule,
    ruled,
)


def _with_spec(field: Json, **keywords: Any) -> Json:
    return crd("tries", an_object({"spec": an_object({"x": field}, **keywords)}))


def _edited(patch: Json, schema: Json | None = None, **version: Any) -> Json:
    plain = an_object({"spec": an_object({"n": INTEGER})})
    found = merged(crd("tries", schema if schema is not None else plain, **version), patch)
    assert isinstance(found, dict)
    return found


def _versions(**second: Any) -> Json:
    found = _edited({})
    version = copy.deepcopy(found["spec"]["versions"][0])
    version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["m"] = TEXT
    found["spec"]["versions"].append({**version, "name": "v2", "storage": False, **second})
    return found


def _named(name: str, group: str, **metadata: Any) -> Json:
    return {"metadata": {"name": name, **metadata}, "spec": {"group": group}}


def _keyed(items: Json, *keys: str) -> Json:
    return _with_spec({**a_list(items), **by_keys(*keys)})


_STATUS: Json = {"subresources": {"status": {}}}
_APPROVAL = "api-approved.kubernetes.io"
DEFINITIONS: dict[str, Json] = {
    "the name": _edited({"metadata": {"name": "x.y"}}),
    "a group without a dot": _edited(_named("tries.nodot", "nodot")),
    "no group": _edited({"spec": {"group": None}}),
    "another scope": _edited({"spec": {"scope": "X"}}),
    "no scope": _edited({"spec": {"scope": None}}),
    "preserveUnknownFields": _edited({"spec": {"preserveUnknownFields": True}}),
    "no schema": _edited({"spec": {"versions": [{"name": "v1", "served": True, "storage": True}]}}),
    "a version's name": _edited({}, name="V1"),
    "two versions": _versions(),
    "no kind": _edited({"spec": {"names": {"kind": None}}}),
    "a kind": _edited({"spec": {"names": {"kind": "a_b"}}}),
    "short names": _edited({"spec": {"names": {"shortNames": ["A", "ok"]}}}),
    "the list's kind": _edited({"spec": {"names": {"listKind": "Trie"}}}),
    "categories": _edited({"spec": {"names": {"categories": ["A"]}}}),
    "singular": _edited({"spec": {"names": {"singular": "A"}}}),
    "columns": _edited(
        {},
        additionalPrinterColumns=[
            {"name": "A", "type": "foo", "jsonPath": "x"},
            {"type": "string", "name": "B", "jsonPath": ".x", "format": "zz"},
        ],
    ),
    "empty columns": _edited({}, additionalPrinterColumns=[{"name": "", "type": "", "jsonPath": ""}]),
    "scale": _edited(
        {},
        subresources={
            "scale": {"specReplicasPath": "x", "statusReplicasPath": ".spec.x", "labelSelectorPath": ".foo.x"}
        },
    ),
    "an empty scale": _edited({}, subresources={"scale": {}}),
    "selectable fields": _edited(
        {},
        selectableFields=[
            {"jsonPath": path} for path in (".spec.n", ".spec.zz", "spec.n", ".spec", ".spec.n", ".metadata.name")
        ],
    ),
    "conversion": _edited({"spec": {"conversion": {"strategy": "Foo"}}}),
    "a protected group": _edited(_named("tries.x.k8s.io", "x.k8s.io")),
    "a protected group, approved badly": _edited(_named("tries.x.k8s.io", "x.k8s.io", annotations={_APPROVAL: "foo"})),
    "a deprecation": _edited({}, deprecationWarning="x"),
    "no type": _with_spec({}),
    "no type at the root": _edited({}, {"properties": {}}),
    "another type at the root": _edited({}, TEXT),
    "an unknown type": _with_spec({"type": "foo"}),
    "null": _with_spec({"type": "null"}),
    "no items": _with_spec({"type": "array"}),
    "items without type": _with_spec(a_list({})),
    "a map at the root": _edited({}, an_object(additionalProperties=TEXT)),
    "fields and a map": _with_spec(an_object({"a": TEXT}, additionalProperties=TEXT)),
    "unique items": _with_spec(a_list(TEXT, uniqueItems=True)),
    "unique items, not": _with_spec(a_list(TEXT, uniqueItems=False)),
    "a reference": _with_spec({**TEXT, "$ref": "x"}),
    "definitions": _with_spec(an_object(definitions={"a": TEXT})),
    "fields by pattern": _with_spec(an_object(patternProperties={"a": TEXT})),
    "dependencies": _with_spec(an_object(dependencies={"a": ["b"]})),
    "an id": _with_spec({**TEXT, "id": "x"}),
    "labels in metadata": _edited({}, an_object({"metadata": an_object({"labels": an_object({})})})),
    "the name in metadata": _edited({}, an_object({"metadata": an_object({"name": {**TEXT, "maxLength": 3}})})),
    "metadata of another type": _edited({}, an_object({"metadata": TEXT})),
    "metadata described": _edited({}, an_object({"metadata": an_object(description="x")})),
    "kind of another type": _edited({}, an_object({"kind": INTEGER})),
    "unknown fields, not": _with_spec(an_object(**{"x-kubernetes-preserve-unknown-fields": False})),
    "an empty embedded object": _with_spec(an_object(**EMBEDDED)),
    "an embedded object without type": _with_spec(EMBEDDED),
    "either, and open": _with_spec({**EITHER, **OPEN}),
    "either, by anyOf": _with_spec({**EITHER, "anyOf": [INTEGER, TEXT]}),
    "either, by allOf": _with_spec({**EITHER, "allOf": [{"anyOf": [INTEGER, TEXT]}, {"minimum": 1}]}),
    "a type in anyOf": _with_spec({**TEXT, "anyOf": [TEXT, {"minLength": 1}]}),
    "an unknown field in anyOf": _with_spec(an_object({"a": TEXT}, anyOf=[{"properties": {"b": {"minLength": 2}}}])),
    "an unknown field in the root's anyOf": _edited(
        {}, an_object({"a": TEXT}, anyOf=[{"properties": {"b": {"minLength": 2}}}])
    ),
    "words in allOf": _with_spec(
        {**TEXT, "allOf": [{"description": "x", "default": "y", "nullable": True, "title": "t"}]}
    ),
    "a type in not": _with_spec({**TEXT, "not": TEXT}),
    "a map type of a text": _with_spec({**TEXT, "x-kubernetes-map-type": "atomic"}),
    "an unknown map type": _with_spec(an_object(**{"x-kubernetes-map-type": "foo"})),
    "a list type of a text": _with_spec({**TEXT, "x-kubernetes-list-type": "atomic"}),
    "an unknown list type": _with_spec(a_list(TEXT, **{"x-kubernetes-list-type": "foo"})),
    "a set of objects": _with_spec(a_list(an_object({}), **{"x-kubernetes-list-type": "set"})),
    "keys without a list of keys": _with_spec(a_list(an_object({"a": TEXT}), **{"x-kubernetes-list-map-keys": ["a"]})),
    "a list by no keys": _with_spec(a_list(an_object({"a": TEXT}), **{"x-kubernetes-list-type": "map"})),
    "texts by keys": _keyed(TEXT, "a"),
    "an unknown key": _keyed(an_object({"a": TEXT}, required=["a"]), "a", "b", "a"),
    "a key that may be absent": _keyed(an_object({"a": TEXT}), "a"),
    "a key that may be null": _keyed(an_object({"a": {**TEXT, "nullable": True}}, required=["a"], nullable=True), "a"),
    "an object as key": _keyed(an_object({"a": an_object({})}, required=["a"]), "a"),
    "a default of another type": _with_spec({**INTEGER, "default": "x"}),
    "a default out of bounds": _with_spec({**INTEGER, "default": 1, "minimum": 5}),
    "a default with an unknown field": _with_spec(an_object({"a": TEXT}, default={"b": 1})),
    "a good default": _with_spec(an_object({"a": TEXT}, default={"a": "x"})),
    "a default that lacks a field": _with_spec(an_object({"a": TEXT}, default={}, required=["a"])),
    "a default that breaks a rule": _with_spec(ruled({**INTEGER, "default": 1}, rule("self > 2", "m"))),
    "a default within that breaks a rule": _with_spec(
        an_object({"a": ruled(INTEGER, rule("self > 2", "m"))}, default={"a": 1})
    ),
    "a root that may be null": _edited({}, an_object({}, nullable=True)),
    "a default of the root": _edited({}, an_object({}, default={})),
    "a default of the name": _edited({}, an_object({"metadata": an_object({"name": {**TEXT, "default": "x"}})})),
    "oldSelf in a list": _with_spec(a_list(ruled(INTEGER, rule("self > oldSelf")), maxItems=3)),
    "oldSelf": _with_spec(ruled(INTEGER, rule("self > oldSelf"))),
    "a bad second version": _versions(schema={"openAPIV3Schema": an_object({"z": {}})}),
    "a default in a map": _with_spec(an_object(additionalProperties={**TEXT, "default": "x"})),
    "a map of anything": _with_spec(an_object(additionalProperties=True)),
    "an unheard-of format": _with_spec({**TEXT, "format": "zz"}),
}
_RULE_PLACE = an_object(
    {
        **{
            "n": INTEGER,
            "s": {**TEXT, "maxLength": 10},
            "l": a_list(INTEGER, maxItems=3),
            "o": an_object({"a": INTEGER}),
        },
        "m": an_object(additionalProperties={**TEXT, "maxLength": 10}, maxProperties=3),
        "p": an_object(**OPEN),
    }
)
for _rule in (
    *(rule("self.zz > 1"), rule("self.n > 1 && self.o.zz == 2"), rule("self.n >"), rule("self.p.x == 1")),
    *(rule("self.m.k == 'a'"), rule("oldSelf.n == self.n"), rule(""), rule(" "), rule("self.n > 1", " ")),
    *(rule("self.n > 1", "a\nb"), rule("self.n > 1 &&\nself.n < 3"), rule("self.n > 1", reason="FieldValueTooLong")),
    *(rule("self.n > 1", fieldPath=path) for path in (".zz", "n", ".o.a", ".m['k']", ".m.k", ".l[0]")),
    *(rule("self.n > 1", messageExpression=text) for text in ("self.zz", "'x' + self.s", " ")),
    *(rule("self.n > 1", optionalOldSelf=True), rule("self.l.all(x, x > 1)"), rule("'self.zz' == self.s")),
):
    DEFINITIONS[f"rule {json.dumps(_rule)}"] = crd("tries", an_object({"spec": ruled(_RULE_PLACE, _rule)}))
DEFINITIONS["rules of the metadata"] = crd(
    "tries",
    ruled(
        an_object({"spec": an_object({"n": INTEGER})}),
        rule("self.metadata.labels.size() > 1"),
        rule("self.spec.n > oldSelf.spec.n"),
        rule('self.apiVersion == "x" && self.kind == "y" && self.metadata.generateName == "z"'),
        rule('self.metadata.namespace == ""'),
    ),
)
