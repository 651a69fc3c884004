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


EITHER: Json = {"x-kubernetes-int-or-string": True}


def ruled(schema: Json, *rules: Json) -> Json:
    return {**schema, "x-kubernetes-validations": list(rules)}


def rule(text: str, message: str = "", **keywords: Any) -> Json:
    return {"rule": text, **({"message": message} if message else {}), **keywords}


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
