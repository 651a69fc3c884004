"""Somebody rewrites our fields, or deletes the Deployment, in a loop: notice it, find out who, say so, and hold back.

The rule is in `fights`.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from prometheus_client import Metric
from prometheus_client.metrics_core import GaugeMetricFamily

from memcached_operator.memcached.fights import QUIET_S, REPAIRS, WINDOW_S, Fights
from memcached_operator.memcached.records import MemcachedRecord
from memcached_operator.memcached.status import Status
from operator_runtime.cache.store import ObjectKey, key_of
from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import KubeError
from operator_runtime.client.resources import Resource
from operator_runtime.controller.controller import Result
from operator_runtime.objects.managed_fields import Writers

logger = logging.getLogger(__name__)

REASON = "Contested"
# The field in whose name a fight over the Deployment's existence is known: the rival deletes it, we make it again.
EXISTENCE = "the Deployment itself"
_OUR_CONDITIONS = ("Available", "Progressing", "Degraded")


class Contests:
    """The fights of all Memcacheds.

    `_told` holds what was said of each fight. `_written` holds, in the order of time, what was last written of the
    status of each Memcached, as one number a field, and when: who writes the same once more puts something right.
    """

    def __init__(
        self,
        client: ApiClient,
        tell: Callable[[MemcachedRecord, str], None],
        *,
        field_manager: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            client: reads the live object.
            tell: records a Warning with that note.
            field_manager: ours; whoever else owns a field is the rival.
            clock: monotonic seconds.
        """
        self._client = client
        self._tell = tell
        self._field_manager = field_manager
        self._clock = clock
        self._fights = Fights(clock)
        self._told: dict[ObjectKey, list[str]] = {}
        self._written: OrderedDict[ObjectKey, tuple[float, Mapping[str, int]]] = OrderedDict()

    def wait_s(self, memcached: MemcachedRecord) -> float:
        """Seconds for which a Memcached is not looked at; 0.0 unless it is contested."""
        return self._fights.wait_s(key_of(memcached), memcached.generation)

    def look(self, memcached: MemcachedRecord) -> bool:
        """A look begins: whether it may put the Deployment right. Says when a fight is over."""
        key = key_of(memcached)
        if fields := self._fights.over(key):
            self._told.pop(key, None)
            logger.info("no longer contested: nobody has %s for %d s", _done(fields), QUIET_S)
        return self._fights.look(key, memcached.generation)

    def damped(self, memcached: MemcachedRecord) -> bool:
        """Whether this look is at a fight that was told of: what it puts right is nothing new."""
        return self._fights.damped(key_of(memcached))

    def wrote(self, memcached: MemcachedRecord) -> bool:
        """Whether this look has had its one write."""
        return self._fights.wrote(key_of(memcached))

    def ended(self, memcached: MemcachedRecord, result: Result) -> Result:
        """A look ended with `result`: when the next one is to be."""
        next_s = self._fights.next_look_s(key_of(memcached))
        if next_s is None or (result.requeue_after_s is not None and result.requeue_after_s <= next_s):
            return result
        return Result(requeue_after_s=next_s, priority=result.priority)

    def forget(self, key: ObjectKey) -> None:
        """The Memcached is gone."""
        self._fights.forget(key)
        self._told.pop(key, None)
        self._written.pop(key, None)

    async def rivals(self, memcached: MemcachedRecord, resource: Resource, fields: Sequence[str]) -> dict[str, str]:
        """Who changed those of these fields of which it has to be said now. To be asked before they are put right."""
        beginning = self._fights.would_begin(key_of(memcached), fields)
        if not beginning:
            return {}
        try:
            body = await self._client.get(resource, memcached.namespace, memcached.name)
        except KubeError as error:
            logger.debug("cannot read who writes %s: %s", ", ".join(beginning), error)
            body = b""
        writers = Writers(body)
        return {field: self._rival(writers, field) for field in beginning}

    def repaired(
        self,
        memcached: MemcachedRecord,
        resource: Resource,
        fields: Iterable[str],
        rivals: Mapping[str, str],
        *,
        asked: bool,
    ) -> None:
        """These fields were put right; `rivals` as it was answered before."""
        key = key_of(memcached)
        before = self._fights.contested(key)
        again = self._fights.repaired(key, memcached.generation, fields, asked=asked)
        told = self._told.setdefault(key, []) if self._fights.contested(key) else []
        for field in self._fights.contested(key)[len(before) :]:
            who = rivals.get(field, "Another client")
            if field == EXISTENCE:
                text = (
                    f"{who} keeps deleting the {resource.kind}: made again {REPAIRS} times within {WINDOW_S:.0f} s, "
                    "from now on once a second at most. Stop that client; for good, the Deployment goes with the "
                    "Memcached."
                )
            else:
                text = (
                    f"{who} keeps changing {field} of the {resource.kind}: put right {REPAIRS} times within "
                    f"{WINDOW_S:.0f} s, from now on once a second at most. Stop that client from writing the field; "
                    "what is to change for good belongs into the Memcached."
                )
            told.append(text)
            logger.warning("contested: %s", text)
            self._tell(memcached, text)
        if again:
            logger.warning("still contested, put right %d times more: %s", self._fights.repairs(key), " ".join(told))
            for text in told:
                self._tell(memcached, text)

    def status_repairs(self, memcached: MemcachedRecord, wanted: Status, patch: Iterable[str]) -> list[str]:
        """Which fields of the status somebody changed since they were last written; `patch` names those that differ."""
        _, before = self._written.get(key_of(memcached), (0.0, {}))
        return [f"status.{field}" for field in patch if field in before and before[field] == _digest(wanted, field)]

    def status_written(self, memcached: MemcachedRecord, wanted: Status) -> None:
        """This status was written, or tried to be while somebody else wrote."""
        key, now = key_of(memcached), self._clock()
        self._written[key] = now, {field: _digest(wanted, field) for field in Status.__struct_fields__}
        self._written.move_to_end(key)
        while next(iter(self._written.values()))[0] < now - WINDOW_S:
            self._written.popitem(last=False)

    def families(self) -> Iterator[Metric]:
        """How many fights there are."""
        yield GaugeMetricFamily(
            "memcached_operator_contested_memcacheds",
            "Memcacheds of which another client rewrites a field in a loop; the log says which and who.",
            value=len(self._fights),
        )

    def _rival(self, writers: Writers, field: str) -> str:
        owners = writers.owners(field)
        for owner in owners:
            if owner.manager != self._field_manager:
                return f'"{owner.manager}"'
        if owners:
            return f'Another client that calls itself "{self._field_manager}" (does a second operator run?)'
        for writer in writers.latest(field):
            if writer.manager != self._field_manager:
                return f'Another client (the last one to write the object is "{writer.manager}")'
        return "Another client"


def _done(fields: Sequence[str]) -> str:
    """What a rival did to these fields, to follow "has"."""
    changed = [field for field in fields if field != EXISTENCE]
    done = [f"changed {', '.join(changed)}"] if changed else []
    return " or ".join([*done, "deleted the Deployment"] if EXISTENCE in fields else done)


def _digest(status: Status, field: str) -> int:
    value = getattr(status, field)
    if field == "conditions":
        # What is ours of them: no times, and nobody else's.
        ours = (each for each in value or () if each.type in _OUR_CONDITIONS)
        value = tuple((each.type, each.status, each.reason, each.message) for each in ours)
    return hash(value)
