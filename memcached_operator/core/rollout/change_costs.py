"""Pure: costs of the differences between two specifications.

What a difference costs is read off the templates that the operator would make of both: by their annotations it is
decided, too, whether servers are replaced or changed while they run. So the costs are those of what is done.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from memcached_operator.api.reserved_pod_fields import Keys, keyed
from memcached_operator.api.v1alpha1 import Spec, Workload
from memcached_operator.core.objects.applied_spec import json_of, spec_of
from memcached_operator.core.objects.keyed_differences import unequal
from memcached_operator.core.objects.pod_template import USER_ID, fingerprint, template
from memcached_operator.core.objects.pod_template_overlay import merged
from memcached_operator.core.objects.workload_types import PodTemplateSpec
from memcached_operator.core.rollout.cost_messages import (
    BEFORE_RESIZE,
    NO_SERVER_AFFECTED,
    changing_workload,
    in_place,
    instead_of_live,
    live,
    rolling,
    scaling,
)
from memcached_operator.core.rollout.in_place import are_alike
from memcached_operator.core.rollout.live.live_requirements import RESTARTS, Means, why_not_live
from memcached_operator.servers.transport import transport
from operator_runtime import Difference, Entry


class Cost(Enum):
    """Cost of a difference, the dearest first."""

    MOVING = "moving"
    """All servers are made anew, by another kind of workload."""
    ROLLING = "rolling"
    """Servers are replaced."""
    SCALING = "scaling"
    """Servers come or go."""
    IN_PLACE = "in-place"
    """Servers start again in their pods, with their items."""
    LIVE = "live"
    """Servers get other memory while they run."""
    AUXILIARY = "auxiliary"
    """Nothing of the servers changes."""


class CostedChange(NamedTuple):
    """The differences of one cost.

    Attributes:
        fields: of the specification; one that was left out has its default.
        words: what is done about them, and about how long it takes.
    """

    cost: Cost
    fields: tuple[Difference, ...]
    words: str

    def __str__(self) -> str:
        return f"{self.cost.value}: {', '.join(each.path for each in self.fields)}: {self.words}"


class Basis(NamedTuple):
    """Basis of a decision besides the specification: the operator's settings and its cluster."""

    image: str
    user_id: int | None = USER_ID
    means: Means = Means()

    def template(self, spec: Spec) -> PodTemplateSpec:
        return template("", spec.image or self.image, self.user_id, spec).template

    def why_not_live(self, spec: Spec) -> str:
        restarts = RESTARTS if spec.podTemplate.restarts_for_memory else ""
        return why_not_live(transport(spec.tls, spec.auth), self.means, restarts=restarts)


def changes(old: Spec, new: Spec, basis: Basis) -> tuple[CostedChange, ...]:
    """List the costs of giving a Memcached of that specification another one, the dearest first."""
    found: dict[Cost, list[Difference]] = {}
    total, before, spec = _effect(old, new, basis), json_of(old), old
    for each in differing(old, new):
        after = merged(before, [(_in_spec(each), each.desired)])
        cost = Cost.MOVING if each.path == "spec.workload" else _effect(spec, spec_of(after), basis)
        found.setdefault(_in_all(cost, total, old, new), []).append(each)
        before, spec = after, spec_of(after)
    return tuple(
        CostedChange(cost, tuple(found[cost]), _in_words(cost, old, new, basis)) for cost in Cost if cost in found
    )


def _in_spec(difference: Difference) -> Keys:
    """The place of a difference in a specification that is `keyed`."""
    return tuple(str(step.key if isinstance(step, Entry) else step) for step in difference.steps[1:])


def differing(old: Spec, new: Spec) -> list[Difference]:
    """The fields in which two specifications differ; one that was left out has its default."""
    return [*unequal(keyed(json_of(new)), keyed(json_of(old)), ("spec",))]


def cost_of(old: PodTemplateSpec, new: PodTemplateSpec, workload: Workload, why_not_live: str) -> Cost | None:
    """Return the cost of giving servers another template; None where it does not concern them.

    Args:
        why_not_live: they cannot be given memory while they run; "" where they can, as far as is known.
    """
    before, after = fingerprint(old), fingerprint(new)
    if after.template_hash != before.template_hash:
        return Cost.IN_PLACE if are_alike(old, new) else Cost.ROLLING
    if after.memory != before.memory:
        return Cost.ROLLING if workload == "Deployment" or why_not_live else Cost.LIVE
    return None


def _effect(old: Spec, new: Spec, basis: Basis) -> Cost:
    cost = cost_of(basis.template(old), basis.template(new), new.workload, basis.why_not_live(new))
    return cost or (Cost.SCALING if old.size != new.size else Cost.AUXILIARY)


def _in_all(cost: Cost, total: Cost, old: Spec, new: Spec) -> Cost:
    """Return the cost of a difference among the others."""
    if cost not in (paced := (Cost.ROLLING, Cost.IN_PLACE, Cost.LIVE)):
        return cost
    if old.workload != new.workload:
        return Cost.MOVING  # the new servers are made so
    # All differences are made at the highest cost among them, as a new pod has its new memory, too. Two differences can
    # also cancel each other out, as where one raises what the other lowers.
    return total if total in paced else Cost.AUXILIARY


def _in_words(cost: Cost, old: Spec, new: Spec, basis: Basis) -> str:
    servers = min(old.size, new.size)
    before, after = (fingerprint(basis.template(each)) for each in (old, new))
    match cost:
        case Cost.MOVING:
            return changing_workload(old, new)
        case Cost.ROLLING:
            memory_alone = before.template_hash == after.template_hash and new.workload == "StatefulSet"
            why = basis.why_not_live(new) if memory_alone else ""
            return rolling(new, servers, moves=old.moves) + (instead_of_live(why) if why else "")
        case Cost.SCALING:
            return scaling(old, new)
        case Cost.IN_PLACE:
            return in_place(new, servers)
        case Cost.LIVE:
            known = basis.means.resizes is not None or not servers
            return live(before.memory, after.memory, servers) + ("" if known else BEFORE_RESIZE)
        case Cost.AUXILIARY:
            return NO_SERVER_AFFECTED
