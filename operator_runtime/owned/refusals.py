"""Memory of refused writes: a write is not sent again at once, as its answer would be the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from operator_runtime.cache.store import ObjectKey
from operator_runtime.client.errors import Forbidden, Invalid, KubeError
from operator_runtime.objects.kinds import Kind
from operator_runtime.owned.per_key_state import KeyedStates

# No watch reports a right that was granted, or of a quota that was raised.
REFUSED_S = 30.0


class Refused(KubeError):
    """A write did not do what it should, although the API server accepted it; the message has the remedy."""


class _Refusal(NamedTuple):
    what: object
    error: KubeError
    until_s: float


class _Refusals(dict[tuple[str, ObjectKey], _Refusal]):
    """Refusals by kind and key of the object."""


class Refusals:
    """The last refusal for each object of each owner."""

    def __init__(self, states: KeyedStates, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._refusals = states.keyed(_Refusals)

    @contextmanager
    def trying(self, owner: ObjectKey, kind: Kind[Any], at: ObjectKey, what: object) -> Iterator[None]:
        """Around a write: raises the error of the same write where that was refused within `REFUSED_S`.

        Args:
            owner: for which it is written.
            kind: of the object that is written.
            at: the object's key.
            what: equal for the same write.
        """
        refusals, place = self._refusals.find(owner) or _Refusals(), (kind.resource.qualified_name, at)
        if (refusal := refusals.get(place)) is not None:
            if refusal.what == what and self._clock() < refusal.until_s:
                raise refusal.error.with_traceback(None)
            del refusals[place]
        try:
            yield
        except (Forbidden, Invalid, Refused) as error:
            self.add(owner, kind, at, what, error)
            raise

    def add(self, owner: ObjectKey, kind: Kind[Any], at: ObjectKey, what: object, error: KubeError) -> None:
        """Record that this write was refused with that error."""
        refusal = _Refusal(what, error, self._clock() + REFUSED_S)
        self._refusals.of(owner)[kind.resource.qualified_name, at] = refusal
