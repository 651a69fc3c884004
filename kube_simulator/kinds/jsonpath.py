"""The JSONPath of printer columns, as far as CRDs use it.

Fields, indexes, `[*]`, and filters that compare one field with a text, such as
`.status.conditions[?(@.type=="Ready")].status`.

Differs from Kubernetes: slices, unions, recursive descent and other filters are not implemented.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from kube_simulator.errors import not_implemented

_STEP: Final = re.compile(
    r"""(?P<all>\[\*\]|\.\*)|\[(?P<index>-?\d+)\]|\.(?P<field>(?:[^.\[\]\\*]|\\.)+)"""
    r"""|\[\?\(\s*@\.(?P<key>[\w-]+)\s*==\s*["'](?P<value>[^"']*)["']\s*\)\]"""
)


def find(path: str, value: object) -> list[Any]:
    """Find what a path such as `.spec.size` leads to; nothing if a field on the way is absent.

    Raises:
        ApiError: 501, the path has something that is not implemented.
    """
    found, at, text = [value], 0, path if path.startswith((".", "[")) else f".{path}"
    while at < len(text):
        step = _STEP.match(text, at)
        if step is None:
            raise not_implemented(f"the JSONPath {path}, from {text[at:]} on")
        found = [each for one in found for each in _taken(step, one)]
        at = step.end()
    return found


def _taken(step: re.Match[str], value: Any) -> Iterator[Any]:
    if step["field"] is not None:
        name = re.sub(r"\\(.)", r"\1", step["field"])
        if isinstance(value, dict) and name in value:
            yield value[name]
    elif step["all"]:
        yield from value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    elif isinstance(value, list):
        if step["index"] is not None:
            yield from value[int(step["index"]) :][:1]
        else:
            yield from (each for each in value if isinstance(each, dict) and each.get(step["key"]) == step["value"])
