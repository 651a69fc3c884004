"""Pure: messages on a write, in the log and in an event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects.applied_spec import applied_spec
from memcached_operator.core.objects.labels import RESTART_ANNOTATION
from memcached_operator.core.objects.owned_kind import OwnedKind
from memcached_operator.core.objects.owned_object import ObjectMeta
from memcached_operator.core.objects.pod_template import fingerprint
from memcached_operator.core.objects.workload import CODEC, DERIVED_PATHS, REPLICAS
from memcached_operator.core.objects.workload_types import WorkloadManifest
from memcached_operator.core.observed.memcacheds import MemcachedRecord
from memcached_operator.core.observed.pods import PodRecord
from memcached_operator.core.observed.workloads import WorkloadRecord
from memcached_operator.core.rollout import change_costs as costs
from memcached_operator.core.rollout.change_costs import Cost
from memcached_operator.core.rollout.in_place_restart import needs_admission
from memcached_operator.core.rollout.workload_decision import Provenance, WorkloadChange
from operator_runtime import Change, Difference


class ChangeWords(NamedTuple):
    """The words about a write.

    Attributes:
        note: of the event, "" for none.
    """

    reason: str
    line: str
    note: str
    fields: dict[str, object]

    @property
    def action(self) -> str:
        return str(self.fields["action"]).capitalize()


def announced(
    spec: Spec, change: WorkloadChange, live: WorkloadRecord, pods: Sequence[PodRecord], why_not: str, until: str
) -> ChangeWords:
    """The announcement of a change before it reaches servers; without servers there is no note.

    Args:
        why_not: they cannot be given it while they run; "" where they can, as far as is known.
        until: what comes first, "" for nothing.
    """
    desired, is_specified = change.desired, change.provenance is Provenance.SPECIFICATION
    decoded = CODEC.decoded(live)
    found = changed_fields(desired, decoded)
    servers, paths = min(live.replicas, spec.size), [each.path for each in found]
    cost = costs.cost_of(decoded.template, desired.template, live.kind, why_not)
    former, mirrored = _replaced(desired, live, pods) if cost is Cost.IN_PLACE else (0, 0)
    old = applied_spec(decoded.metadata.annotations)
    moves = old is not None and old.moves
    if cost is Cost.IN_PLACE and not (pods and mirrored + former == len(pods)):
        reason, words = "InPlaceChange", costs.in_place(spec, servers, until)
    elif cost is Cost.LIVE:
        was, is_ = (fingerprint(each.template).memory for each in (decoded, desired))
        reason, words = "LiveChange", costs.live(was, is_, servers)
    else:
        cost, reason, words = Cost.ROLLING, "RollingChange", costs.rolling(spec, servers, until, moves=moves)
    words += costs.instead_of_live(why_not) if why_not else ""
    words += costs.of_mirrored(mirrored) if mirrored else ""
    words += costs.of_former(former) if former else ""
    named = ", ".join(paths) or "the pods' template"
    whose = "" if is_specified else "the operator's own defaults have changed: "
    line = f"{whose}{named}: {words}"
    fields: dict[str, object] = {"action": "change", "cost": cost.value, "changed": paths}
    note = ". ".join(filter(None, (line[0].upper() + line[1:] if whose else line, "; ".join(map(str, found)))))
    return ChangeWords(reason, line, note if servers else "", fields)


def changed_fields(desired: WorkloadManifest, live: WorkloadManifest) -> list[Difference]:
    """The fields by which the pods of two workloads differ; none where the former specification is not known."""
    found, old, new = [], applied_spec(live.metadata.annotations), applied_spec(desired.metadata.annotations)
    if old is not None and new is not None:
        found = costs.differing(_with_image(old, live), _with_image(new, desired))
    before, after = ((each.template.metadata or ObjectMeta()).annotations or {} for each in (live, desired))
    restart = costs.restart_requested(before.get(RESTART_ANNOTATION), after.get(RESTART_ANNOTATION))
    return found if restart is None else [*found, restart]


def _with_image(spec: Spec, made: WorkloadManifest) -> Spec:
    """A specification that names the image also where it is the operator's default."""
    return spec.model_copy(update={"image": made.image})


def _replaced(desired: WorkloadManifest, live: WorkloadRecord, pods: Sequence[PodRecord]) -> tuple[int, int]:
    """Count the servers that a change in place replaces: of a former template, and those that admission changed."""
    present = [pod for pod in pods if pod.restart_hash == live.restart_hash]
    return len(pods) - len(present), sum(needs_admission(pod, desired.image) for pod in present)


def change_in_words(
    memcached: MemcachedRecord, kind: str, change: Change[Any], owned: OwnedKind | None = None
) -> ChangeWords:
    """The words about a write of an object of that kind, which `owned` describes unless it is a workload."""
    name, paths = change.obj.name, [each.path for each in change.fields]
    # A line begins with the Memcached, whose name most objects have.
    what = kind if name == memcached.name else f"{kind} {name}"
    which = {"kind": kind, "object": name}
    if change.deleted:
        why = "; ".join(map(str, change.fields)) or "no longer desired"
        done, action = ("Replaced", "replace") if change.fields else ("Deleted", "delete")
        fields: dict[str, object] = {"action": action, **which, "why": why}
        return ChangeWords(done, f"{done.lower()} {what}: {why}", f"{done} {kind} {name}: {why}", fields)
    if change.before is None:
        replaced = "; ".join(map(str, change.fields))
        because = "new Memcached" if memcached.generation == 1 else "required by the specification"
        why = f"in place of the deleted one, as {replaced}" if replaced else because
        why = why if change.desired_changed else "it did not exist"
        replicas = f" with {change.obj.replicas} replicas" if isinstance(change.obj, WorkloadRecord) else ""
        note = f"Created {kind} {name}{replicas}" + ("" if change.desired_changed else f": {why}")
        fields = {"action": "create", **which, "why": why}
        if isinstance(change.obj, WorkloadRecord):
            fields["replicas"] = change.obj.replicas
        return ChangeWords("Created", f"created {what}{replicas} ({why})", note, fields)
    if paths == [REPLICAS]:
        (size,) = change.fields
        why = "spec.size changed" if change.desired_changed else "another client had changed them"
        line = f"scaled {what} from {size.live} to {size.desired} replicas ({why})"
        note = f"Scaled {kind} {name} from {size.live} to {size.desired} replicas: {why}"
        fields = {"action": "scale", **which, "from": size.live, "to": size.desired, "why": why}
        return ChangeWords("Scaled", line, note, fields)
    if owned is not None and owned.listed and change.desired_changed:
        number = len(owned.listed(owned.codec.decoded(change.obj)))
        fields = {"action": "publish", **which, "servers": number}
        # No event: they would use up those of the Memcached while it grows.
        return ChangeWords("", f"published {number} servers", "", fields)
    # The operator's annotations follow from other fields. They are named only where nothing else differs: another
    # client has edited them, or the specification says the same otherwise, which is no event.
    derived = all(each.path in DERIVED_PATHS for each in change.fields)
    reported = [each for each in change.fields if derived or each.path not in DERIVED_PATHS]
    changes = "; ".join(map(str, reported))
    fields = {"action": "update", **which, "changed": [each.path for each in reported]}
    note = "" if derived and change.desired_changed else f"Updated {kind} {name}: {changes}"
    return ChangeWords("Updated", f"updated {what}: {changes}", note, fields)
