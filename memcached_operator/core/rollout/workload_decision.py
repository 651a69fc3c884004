"""Pure: decision on how a workload is written now: as desired, or with its template as it is, and why so."""

from __future__ import annotations

from enum import Enum
from functools import cached_property
from typing import NamedTuple

import msgspec

from memcached_operator.core.objects.labels import APPLIED_ANNOTATION
from memcached_operator.core.objects.pod_template import fingerprint
from memcached_operator.core.objects.workload import CODEC
from memcached_operator.core.objects.workload_types import WorkloadManifest
from memcached_operator.core.observed.workloads import WorkloadRecord


class Provenance(Enum):
    """Origin of a difference between the desired workload and the live one."""

    SPECIFICATION = "the specification changed, or a restart was requested"
    DEFAULTS = "the operator's own defaults have changed"
    PLAN = "the specification, at a time that has come: servers have drained, or are paused"
    DRIFT = "another client changed it"


class Hold(Enum):
    """Reason that keeps the template of a workload's pods as it is."""

    NONE = "nothing"
    QUEUED = "the servers of another Memcached are being replaced for the operator's own defaults"
    PAUSED = "spec.rollout.paused holds a change of the operator's own defaults"
    RESIZING = "its servers are being resized; until then a server that is lost comes back as it was"
    LACKING = "new pods would not start, as they lack their scripts"
    DRAINING = "its servers leave, and keep their keys until then"


class TemplateChange(NamedTuple):
    """Parts in which the pods of a live workload are to differ.

    Attributes:
        needs_new_pods: in something that only a new pod takes on.
        memory: in memory, which a running server can be given, too.
    """

    needs_new_pods: bool = False
    memory: bool = False


class WorkloadChange(msgspec.Struct, frozen=True, dict=True):
    """A desired workload and the live one.

    Attributes:
        is_target: the specification has this kind of workload; the other one's servers leave.
        restart: what each server is to start again for.
        is_pending: the specification is yet to be written to it.
        is_step: it is in memory alone that nobody specified; see `memory_scaling`.
        replaces: servers are replaced for its memory, as they cannot be given it while they run.
        lacks_scripts: pods of another template than the live one would not start.
    """

    desired: WorkloadManifest
    live: WorkloadRecord | None
    is_target: bool
    restart: str
    is_pending: bool
    planned: bool
    is_step: bool = False
    replaces: bool = False
    lacks_scripts: bool = False

    @cached_property
    def template(self) -> TemplateChange:
        if self.live is None:
            return TemplateChange()
        desired = fingerprint(self.desired.spec.template)
        memory = desired.memory != self.live.memory
        of_controller = memory and self.live.kind == "Deployment"
        return TemplateChange(desired.template_hash != self.live.template_hash or of_controller, memory)

    @property
    def provenance(self) -> Provenance:
        """Origin of the change, the user's own first."""
        if self.is_pending or (self.live is not None and self.restart != self.live.restart):
            return Provenance.SPECIFICATION
        if self.is_target and any(self.template):
            return Provenance.DEFAULTS
        return Provenance.PLAN if self.planned else Provenance.DRIFT

    @property
    def needs_lock(self) -> bool:
        """Report whether servers are to be replaced without a user's request: one Memcached at a time."""
        template = self.template
        replaces = template.needs_new_pods or (template.memory and self.replaces)
        is_possible = self.is_target and not self.lacks_scripts
        return is_possible and replaces and self.provenance is Provenance.DEFAULTS


def decide_hold(change: WorkloadChange, *, has_lock: bool, paused: bool, resizing: bool) -> Hold:
    """Decide what keeps the template of a workload's pods as it is for now.

    Args:
        has_lock: servers may be replaced now for the operator's own defaults.
    """
    template = change.template
    if not any(template):
        return Hold.NONE
    if not change.is_target:
        return Hold.DRAINING
    if change.lacks_scripts:
        return Hold.LACKING
    if change.needs_lock and not has_lock:
        return Hold.PAUSED if paused else Hold.QUEUED
    return Hold.RESIZING if resizing and not template.needs_new_pods else Hold.NONE


def has_foreign_template(workload: WorkloadRecord, manifest: WorkloadManifest) -> bool:
    """Report whether another client changed the template for new pods, which is repaired as soon as it may be."""
    return any(each.steps[:2] == ("spec", "template") for each in CODEC.differ(manifest, workload))


def written_now(change: WorkloadChange, hold: Hold) -> WorkloadManifest:
    """Build the workload as it is written now: as desired, or with the live template of pods."""
    live, desired = change.live, change.desired
    if hold is Hold.NONE or live is None:
        return desired
    decoded, meta = CODEC.decoded(live), desired.metadata
    applied = {APPLIED_ANNOTATION: (decoded.metadata.annotations or {}).get(APPLIED_ANNOTATION, "")}
    annotations = {name: text for name, text in ((meta.annotations or {}) | applied).items() if text}
    return msgspec.structs.replace(
        desired,
        metadata=msgspec.structs.replace(meta, annotations=annotations),
        spec=msgspec.structs.replace(desired.spec, template=decoded.spec.template),
        passed=decoded.passed,
    )
