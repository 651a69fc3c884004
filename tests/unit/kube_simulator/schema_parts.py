"""Parts of which the questions about schemas are made."""

from typing import Any

Json = dict[str, Any]

GROUP = "questions.example.com"

TEXT: Json = {"type": "string"}
INTEGER: Json = {"type": "integer"}


def an_object(properties: Json | None = None, /, **keywords: Any) -> Json:
    named = {} if properties is None else {"properties": properties}
    return {"type": "object", **named, **keywords}


def a_list(items: Json, **keywords: Any) -> Json:
    return {"type": "array", "items": items, **keywords}


def by_keys(*keys: str) -> Json:
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


def ruled(schema: Json, *rules: str) -> Json:
    """A schema with rules in CEL."""
    return {**schema, "x-kubernetes-validations": [{"rule": each} for each in rules]}


def crd(plural: str, schema: Json, **version: Any) -> Json:
    kind = plural.removesuffix("s").title()
    first = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [first],
        },
    }
