"""The names of custom resources: whether a CRD is given those that it asks for, as two may not have the same.

Differs from Kubernetes: a CRD is given all of its names or, where one is taken, none, and keeps those that it had.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kube_simulator.store.go_text import quoted
from kube_simulator.values import Json

# The fields that name resources, those that name kinds, and the reason that is given if one is taken.
_FIELDS = (
    {"plural": "PluralConflict", "singular": "SingularConflict", "shortNames": "ShortNamesConflict"},
    {"kind": "KindConflict", "listKind": "ListKindConflict"},
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The names that a CRD has from now on, and whether they are those that it asked for."""

    names: Json
    reason: str = "NoConflicts"
    message: str = "no conflicts found"

    @property
    def accepted(self) -> bool:
        """Report whether it got the names that it requested."""
        return self.reason == "NoConflicts"


def judge(crd: Json, others: Iterable[Json]) -> Verdict:
    """Judge the names that a CRD requests.

    Args:
        others: the other CRDs of its group; what they were given is taken.
    """
    desired, had = crd["spec"]["names"], _accepted(crd)
    given = [_accepted(other) for other in others]
    for reasons in _FIELDS:
        taken = {name for names in given for field in reasons for name in _listed(names, field)}
        for field, reason in reasons.items():
            for name in _listed(desired, field):
                if name in taken and name not in _listed(had, field):
                    return Verdict({"plural": "", "kind": "", **had}, reason, f"{quoted(name)} is already in use")
    return Verdict({key: value for key, value in desired.items() if value})


def _accepted(crd: Json) -> Json:
    return (crd.get("status") or {}).get("acceptedNames") or {}


def _listed(names: Json, field: str) -> list[str]:
    value = names.get(field) or []
    return [value] if isinstance(value, str) else value
