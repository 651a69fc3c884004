"""Objects of Kubernetes within a custom resource (`x-kubernetes-embedded-resource`): apiVersion, kind and name.

Differs from Kubernetes: of their metadata only the name is held to its rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kube_simulator.errors import Cause
from kube_simulator.schema import causes
from kube_simulator.schema.node import MISSING, Node
from kube_simulator.schema.values import join
from kube_simulator.values import Json

_KIND: Final = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_KIND_WORDS: Final = (
    "may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric "
    "characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  "
    f"or 'abc-123', regex used for validation is '{_KIND}')"
)


def embedded_problems(node: Node, value: object, path: str, *, root: bool) -> Iterator[Cause]:
    """What is wrong with the identity of the objects embedded in a value; that of the root is looked at elsewhere."""
    if isinstance(value, dict):
        if node.embedded and not root:
            yield from _identity_problems(value, path)
        for name, each in value.items():
            child = node.properties.get(name)
            if child is not None and not (node.embedded and name == "metadata"):
                yield from embedded_problems(child, each, join(path, name), root=False)
            elif child is None and node.additional is not None:
                yield from embedded_problems(node.additional, each, f"{path}[{name}]", root=False)
    elif isinstance(value, list) and (item := node.items()) is not None:
        for index, each in enumerate(value):
            yield from embedded_problems(item, each, f"{path}[{index}]", root=False)


def _identity_problems(value: Json, path: str) -> Iterator[Cause]:
    for name in ("apiVersion", "kind"):
        said = value.get(name, MISSING)
        at = f"{path}.{name}"
        if said is MISSING:
            yield causes.required(at)
        elif not isinstance(said, str):
            yield causes.invalid(at, said, "must be a string")
        elif not said:
            yield causes.invalid(at, said, "must not be empty")
        elif name == "apiVersion" and said.count("/") > 1:
            yield causes.invalid(at, said, f"unexpected GroupVersion string: {said}")
        elif name == "kind" and not (re.fullmatch(_KIND, said.lower()) and len(said) <= 63):
            yield causes.invalid(at, said, _KIND_WORDS)
    metadata = value.get("metadata")
    own = metadata.get("name") if isinstance(metadata, dict) else None
    if isinstance(own, str):
        at = f"{path}.metadata.name"
        if own in (".", ".."):
            yield causes.invalid(at, own, f"may not be '{own}'")
        yield from (causes.invalid(at, own, f"may not contain '{each}'") for each in "/%" if each in own)
