"""Pure: discovery of a group's kinds: for a kind that was requested in vain, and before something is tried."""

from __future__ import annotations

import msgspec

from operator_runtime.client.resources import Resource

# Names in one message; the core group has 17.
_NAMES_SHOWN = 20


class _Served(msgspec.Struct):
    name: str
    kind: str
    namespaced: bool


class _ResourceList(msgspec.Struct):
    """The answer at /apis/GROUP/VERSION: https://kubernetes.io/docs/reference/using-api/api-concepts/#discovery-api."""

    resources: list[_Served] | None = None


def has_subresource(resource: Resource, subresource: str, answer: bytes) -> bool:
    """Report whether a kind has a subresource, as `resize`; `answer`: the body at the path of its group and version.

    Raises ValueError where the answer is none.
    """
    served = msgspec.json.decode(answer, type=_ResourceList).resources or []
    return any(each.name == f"{resource.plural}/{subresource}" for each in served)


def misnamed(resource: Resource, answer: bytes) -> tuple[str, bool]:
    """Explain why a kind was not found although its group and version are served; `answer` is the body at their path.

    A sentence, "" where the answer does not show it, and whether the kind is there under another name or scope, so that
    nothing is to be installed.
    """
    try:
        served = msgspec.json.decode(answer, type=_ResourceList).resources or []
    except msgspec.DecodeError:
        return "", False
    whole = [each for each in served if "/" not in each.name]  # a subresource is named PLURAL/NAME
    for each in whole:
        if each.name == resource.plural:
            if resource.namespaced and not each.namespaced:
                return f"The kind {each.kind} is cluster-scoped: declare it with namespaced=False.", True
            return "", False  # it came in the meantime
    for each in whole:
        if each.kind == resource.kind:
            return f"The plural of {each.kind} in {resource.api_version} is {each.name!r}: declare it so.", True
    names = sorted(each.name for each in whole)
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return f"{resource.api_version} has {', '.join(names[:_NAMES_SHOWN]) or 'no kind at all'}{more}.", False
