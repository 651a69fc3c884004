"""Pure: what is said of a write, in the log and in an event."""

from __future__ import annotations

from typing import Any, NamedTuple

from memcached_operator.memcached.beside.publication import listed
from memcached_operator.memcached.beside.rules import PUBLICATION
from memcached_operator.memcached.records import MemcachedRecord
from memcached_operator.memcached.workloads.records import WorkloadRecord
from memcached_operator.memcached.workloads.rules import REPLICAS
from operator_runtime import Change


class Words(NamedTuple):
    """What is told of a write.

    Attributes:
        reason: of the event.
        line: of the log.
        note: of the event, "" for none.
        fields: of the line.
    """

    reason: str
    line: str
    note: str
    fields: dict[str, object]

    @property
    def action(self) -> str:
        """The event's."""
        return str(self.fields["action"]).capitalize()


def in_words(memcached: MemcachedRecord, kind: str, change: Change[Any]) -> Words:
    """What is told of a write of an object of that kind."""
    name, paths = change.obj.name, [each.path for each in change.fields]
    if change.deleted:
        why = "; ".join(map(str, change.fields)) or "no longer wanted"
        done = "Replaced" if change.fields else "Deleted"
        fields: dict[str, object] = {"action": done.removesuffix("d").lower(), "kind": kind, "why": why}
        return Words(done, f"{done.lower()} {kind}: {why}", f"{done} {kind} {name}: {why}", fields)
    if change.before is None:
        replaced = "; ".join(map(str, change.fields))
        asked = "new Memcached" if memcached.generation == 1 else "the specification asks for it"
        why = f"in place of the one that was deleted, as {replaced}" if replaced else asked
        why = why if change.asked else "there was none"
        replicas = f" with {change.obj.replicas} replicas" if isinstance(change.obj, WorkloadRecord) else ""
        note = f"Created {kind} {name}{replicas}" + ("" if change.asked else f": {why}")
        fields = {"action": "create", "kind": kind, "why": why}
        if isinstance(change.obj, WorkloadRecord):
            fields["replicas"] = change.obj.replicas
        return Words("Created", f"created {kind}{replicas} ({why})", note, fields)
    if paths == [REPLICAS]:
        (size,) = change.fields
        why = "spec.size changed" if change.asked else "somebody else had changed them"
        line = f"scaled {kind} from {size.live} to {size.wanted} replicas ({why})"
        note = f"Scaled {kind} {name} from {size.live} to {size.wanted} replicas: {why}"
        fields = {"action": "scale", "kind": kind, "from": size.live, "to": size.wanted, "why": why}
        return Words("Scaled", line, note, fields)
    if kind == "ConfigMap" and change.asked:
        number = len(listed(PUBLICATION.held(change.obj)))
        fields = {"action": "publish", "kind": kind, "servers": number}
        # No event: they would use up those of the Memcached while it grows.
        return Words("", f"published {number} servers", "", fields)
    what = "; ".join(map(str, change.fields))
    fields = {"action": "update", "kind": kind, "changed": paths}
    return Words("Updated", f"updated {kind}: {what}", f"Updated {kind} {name}: {what}", fields)
