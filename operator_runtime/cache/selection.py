"""Pure: selection of the objects that a cache can hold at all, by the scope and the selector of its watches."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

# One requirement of a label selector in the form that most have. Of the others nothing is known.
_EQUALITY = re.compile(r"\s*([A-Za-z0-9][-A-Za-z0-9_./]*)\s*==?\s*([-A-Za-z0-9_.]*)\s*")


@dataclass(frozen=True, slots=True)
class Selection:
    """Selection of a kind's objects that a cache holds.

    Attributes:
        namespaces: those that are watched; () for all, and for cluster-scoped kinds.
        labels: label selector, as in the API's query.
    """

    namespaces: tuple[str, ...] = ()
    labels: str = ""

    def may_hold(self, namespace: str, labels: Mapping[str, str] | None = None) -> bool:
        """Report whether an object belongs here; False only where that is certain.

        Args:
            namespace: of the object, "" for one of a cluster-scoped kind.
            labels: of the object, None where they are not known.
        """
        if self.namespaces and namespace not in self.namespaces:
            return False
        required = (_EQUALITY.fullmatch(each) for each in self.labels.split(",") if labels is not None)
        return all(each is None or (labels or {}).get(each[1]) == each[2] for each in required)
