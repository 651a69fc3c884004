from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, cast

import pytest

from memcached_operator.api.crd import memcached_crd
from memcached_operator.check.crd_differences import (
    absent,
    judge_definition,
    published_differences,
    value_differences,
)
from memcached_operator.check.findings import Verdict

Json = dict[str, Any]
VERSION = ("spec", "versions", 0)
PROPERTIES = (*VERSION, "schema", "openAPIV3Schema", "properties")
SPEC = (*PROPERTIES, "spec", "properties")
ITEM = (*PROPERTIES, "status", "properties", "conditions", "items", "properties")
CRD: Any = memcached_crd()
COLUMNS = CRD["spec"]["versions"][0]["additionalPrinterColumns"]
ORDER = "Image, Memory, Workload, Age, Available, Ready, Size, this release's is Size"
GONE = object()
COLUMNS_AT = (*VERSION, "additionalPrinterColumns")
OURS = "spec.versions.v1alpha1"
SHOWN_COLUMNS = f"{OURS}.additionalPrinterColumns"


def own_definition() -> Json:
    return memcached_crd()


def live(**conditions: str) -> Json:
    """As an API server shows it once it is served."""
    document = copy.deepcopy(own_definition())
    document["spec"]["conversion"] = {"strategy": "None"}
    statuses = {"NamesAccepted": "True", "Established": "True", **conditions}
    document["status"] = {
        "conditions": [
            {"type": name, "status": status, "message": f"{name} says so"} for name, status in statuses.items()
        ]
    }
    return document


def version(document: Json) -> Json:
    found: Json = document["spec"]["versions"][0]
    return found


def schema(document: Json) -> Json:
    found: Json = version(document)["schema"]["openAPIV3Schema"]
    return found


def changed(steps: Sequence[str | int], value: object) -> Json:
    """One that is served, with another value there, or none."""
    document: Any = live()
    *way, last = steps
    part = document
    for step in way:
        part = part[step]
    if value is GONE:
        del part[last]
    else:
        part[last] = value
    return cast(Json, document)


def test_one_that_is_established_and_equal_is_ok() -> None:
    finding = judge_definition(live(), own_definition(), ())
    assert (finding.verdict, finding.remedy, finding.details) == (Verdict.OK, "", ())


@pytest.mark.parametrize("condition", ["NamesAccepted", "Established"])
def test_one_that_is_not_served_is_wrong_in_the_servers_words(condition: str) -> None:
    finding = judge_definition(live(**{condition: "False"}), own_definition(), ())
    assert finding.verdict is Verdict.WRONG
    assert finding.text.endswith(f"is not served ({condition}): {condition} says so")


@pytest.mark.parametrize(
    ("steps", "value", "words"),
    [
        (("status",), {}, "no reason is reported yet"),
        (("metadata", "deletionTimestamp"), "2026-11-21T12:00:00Z", "is being deleted"),
    ],
)
def test_one_that_is_not_served_yet_or_any_more_is_wrong(steps: Sequence[str], value: object, words: str) -> None:
    finding = judge_definition(changed(steps, value), own_definition(), ())
    assert finding.verdict is Verdict.WRONG
    assert words in finding.text


MORE = {**version(own_definition()), "name": "v1beta1"}
NO_PATTERN = ((*SPEC, "image", "pattern"), GONE)


@pytest.mark.parametrize(
    ("steps", "value", "sentences"),
    [
        ((*SPEC, "image"), GONE, [f"{OURS}.spec.image is missing, this release has {{"]),
        ((*SPEC, "size", "minimum"), 1, [f"{OURS}.spec.size.minimum is 1, this release's is 0"]),
        ((*SPEC, "image", "pattern"), GONE, [f"{OURS}.spec.image.pattern is missing, this release has ^"]),
        ((*SPEC, "size", "description"), "How many.", [f"{OURS}.spec.size.description is How many., this release's"]),
        ((*SPEC, "port"), {"type": "integer"}, [f'{OURS}.spec.port is {{"type": "integer"}}, this release has none']),
        ((*VERSION, "subresources", "scale"), GONE, [f"{OURS}.subresources.scale is missing, this release has {{"]),
        ((*ITEM, "more"), {}, [f"{OURS}.status.conditions.items.more is {{}}, this release has none"]),
        ((*PROPERTIES, "metadata", "properties", "name", "maxLength"), 63, [f"{OURS}.metadata.name.maxLength is 63"]),
        ((*COLUMNS_AT, 1), GONE, [f"{SHOWN_COLUMNS}.Ready is missing"]),
        (COLUMNS_AT, [*COLUMNS, {"name": "Port"}], [f'{SHOWN_COLUMNS}.Port is {{"name": "Port"}}, this release has']),
        ((*COLUMNS_AT, 0, "jsonPath"), ".a", [f"{SHOWN_COLUMNS}.Size.jsonPath is .a, this release's is"]),
        (COLUMNS_AT, COLUMNS[::-1], [f"{SHOWN_COLUMNS}: the order is {ORDER}"]),
        (("spec", "names", "shortNames"), GONE, ['spec.names.shortNames is missing, this release has ["mcd"]']),
        ((*VERSION, "served"), False, [f"{OURS}.served is false, this release's is true"]),
        (("spec", "versions"), [version(own_definition()), MORE], ["spec.versions.v1beta1 is {"]),
        ((*VERSION, "name"), "v1", ["spec.versions.v1 is {", f"{OURS} is missing"]),
        (("spec", "conversion", "strategy"), "Webhook", ["spec.conversion.strategy is Webhook, this release's is"]),
    ],
)
def test_each_difference_names_its_field(steps: Sequence[str | int], value: object, sentences: list[str]) -> None:
    finding = judge_definition(changed(steps, value), own_definition(), ())
    assert finding.verdict is Verdict.WRONG
    assert "memcached-operator crd | kubectl apply" in finding.remedy
    assert len(finding.details) == len(sentences)
    for found, expected in zip(finding.details, sentences, strict=True):
        assert found.startswith(expected)


def test_for_all_namespaces_the_definition_alone_is_applied() -> None:
    # That install brings the users' ClusterRoles itself.
    by_itself = "memcached-operator crd | kubectl apply --server-side --force-conflicts -f -"
    assert absent(()).remedy == by_itself
    assert judge_definition(changed(*NO_PATTERN), own_definition(), ()).remedy.startswith(f"{by_itself} (unless ")


def test_for_some_namespaces_the_users_cluster_roles_are_applied_with_it() -> None:
    document = changed(*NO_PATTERN)
    file = "-f manifests/install/crds.yaml"
    assert absent(("shop",)).remedy == f"kubectl apply --server-side {file}"
    differing = judge_definition(document, own_definition(), ("shop",)).remedy
    # What differs has an owner already.
    assert differing.startswith(f"kubectl apply --server-side --force-conflicts {file} (unless ")
    document["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    remedy = judge_definition(document, own_definition(), ("shop",)).remedy
    assert remedy == f"wait until it is gone; then kubectl apply --server-side {file}"


def test_a_number_and_a_truth_value_are_not_the_same() -> None:
    assert list(value_differences({"preserveUnknownFields": 0}, {"preserveUnknownFields": False}, ""))
    assert list(value_differences({"minimum": True}, {"minimum": 1}, ""))


def published(document: Json) -> Json:
    """The OpenAPI document that an API server makes of it."""
    kind = {"group": "cache.example.com", "version": "v1alpha1", "kind": "Memcached"}
    shown = {**schema(document), "x-kubernetes-group-version-kind": [kind]}
    shown["properties"] = {**shown["properties"], "metadata": {"allOf": [{"$ref": "#/components/schemas/Meta"}]}}
    return {"components": {"schemas": {"other": {}, "Memcached": shown}}}


def test_the_published_schema_tells_of_the_fields_of_spec_and_status() -> None:
    assert list(published_differences(published(own_definition()), own_definition()) or ["nothing"]) == []
    document = changed((*SPEC, "size", "minimum"), 1)
    (found,) = published_differences(published(document), own_definition()) or ["nothing"]
    assert found == "spec.size.minimum is 1, this release's is 0"


@pytest.mark.parametrize(
    ("steps", "path"),
    [
        (("disruptionBudget", "properties", "maxUnavailable"), "disruptionBudget.maxUnavailable"),
        (("resources", "properties", "limits", "additionalProperties"), "resources.limits.additionalProperties"),
    ],
    ids=["a field", "the values of a map"],
)
def test_what_is_published_besides_of_what_has_two_types_is_no_difference(steps: tuple[str, ...], path: str) -> None:
    document = live()
    either = schema(document)["properties"]["spec"]["properties"]
    for step in steps:
        either = either[step]
    either["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    assert list(published_differences(published(document), own_definition()) or ["nothing"]) == []
    either["anyOf"] = [{"type": "string"}]
    (found,) = published_differences(published(document), own_definition()) or ["nothing"]
    assert found.startswith(f"spec.{path}.anyOf is ")


@pytest.mark.parametrize("document", [{}, {"components": {"schemas": {"Memcached": {"type": "object"}}}}])
def test_a_document_that_does_not_tell_of_the_kind_says_nothing(document: Json) -> None:
    assert published_differences(document, own_definition()) is None
