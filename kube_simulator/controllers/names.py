"""The names of custom resources: which of those that a CRD asks for it is given, as two may not have the same.

Differs from Kubernetes: nothing known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kube_simulator.store.go_text import quoted
from kube_simulator.values import Json

# The field of the names, the reason that is given if it is taken, and whether it names kinds or resources.
_SINGLE = (("plural", "PluralConflict", False), ("singular", "SingularConflict", False))
_KINDS = (("kind", "KindConflict", True), ("listKind", "ListKindConflict", True))


@dataclass(frozen=True, slots=True)
class Verdict:
    """The names that a CRD has from now on, and whether they are all it asked for."""

    names: Json
    reason: str = "NoConflicts"
    message: str = "no conflicts found"

    @property
    def accepted(self) -> bool:
        """It got what it asked for."""
        return self.reason == "NoConflicts"


def judge(crd: Json, others: Iterable[Json]) -> Verdict:
    """What becomes of the names that a CRD asks for.

    Args:
        others: the other CRDs of its group; what they were given is taken.
    """
    wanted, had = crd["spec"]["names"], (crd.get("status") or {}).get("acceptedNames") or {}
    resources, kinds = _taken(others)
    names = {key: value for key, value in had.items() if value}
    verdict = "", ""
    for field, reason, is_kind in _SINGLE:
        verdict = _single(field, reason, wanted, names, kinds if is_kind else resources) or verdict
    ours = set(had.get("shortNames") or ())
    clashes = [each for each in wanted.get("shortNames") or () if each not in ours and each in resources]
    if clashes:
        said = [f"{quoted(each)} is already in use" for each in clashes]
        verdict = "ShortNamesConflict", said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    else:
        _set(names, "shortNames", wanted)
    for field, reason, is_kind in _KINDS:
        verdict = _single(field, reason, wanted, names, kinds if is_kind else resources) or verdict
    _set(names, "categories", wanted)
    given = {"plural": "", "kind": "", **names}
    return Verdict(given, *verdict) if verdict[0] else Verdict(given)


def _single(field: str, reason: str, wanted: Json, names: Json, taken: set[str]) -> tuple[str, str] | None:
    """Give it that name, or say why not."""
    name = wanted.get(field) or ""
    if name != names.get(field, "") and name in taken:
        return reason, f"{quoted(name)} is already in use"
    _set(names, field, wanted)
    return None


def _set(names: Json, field: str, wanted: Json) -> None:
    names.pop(field, None)
    if wanted.get(field):
        names[field] = wanted[field]


def _taken(others: Iterable[Json]) -> tuple[set[str], set[str]]:
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        names = (other.get("status") or {}).get("acceptedNames") or {}
        resources.update((names.get("plural", ""), names.get("singular", ""), *(names.get("shortNames") or ())))
        kinds.update((names.get("kind", ""), names.get("listKind", "")))
    return resources - {""}, kinds - {""}
