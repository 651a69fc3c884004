"""Pure: what to do about the Deployment of a Memcached, given the one that is there."""

from __future__ import annotations

from dataclasses import dataclass

from memcached_operator.api.names import KIND
from memcached_operator.memcached import desired
from memcached_operator.memcached.drift import Difference, differences
from memcached_operator.memcached.objects import Deployment, comparable, decode_deployment
from memcached_operator.memcached.records import DeploymentRecord

_SELECTOR = "spec.selector"
_PORTS = f"spec.template.spec.containers[{desired.CONTAINER}].ports"


@dataclass(frozen=True, slots=True)
class Nothing:
    """It is as wanted."""


@dataclass(frozen=True, slots=True)
class Create:
    """There is none."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Its number of replicas differs and nothing else."""

    uid: str
    live: int
    wanted: int


@dataclass(frozen=True, slots=True)
class Repair:
    """Some of our fields differ.

    Attributes:
        ports: those of them that are about ports: these merge by their number, so an apply would leave an edited one
            beside ours, under the same name, and be refused.
        excess: those of fields that must not be there: an apply takes away only what nobody else has set.

    Ports and excess are put right by a patch of their own, before anything else.
    """

    uid: str
    differences: tuple[Difference, ...]
    ports: tuple[Difference, ...]
    excess: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class Await:
    """It is going away: deleted by somebody, or the leftover of a deleted Memcached of the same name."""

    message: str


@dataclass(frozen=True, slots=True)
class LeaveAlone:
    """It is not ours."""

    message: str


@dataclass(frozen=True, slots=True)
class CannotChange:
    """It is ours, and differs in what Kubernetes never lets anybody change."""

    message: str


Action = Nothing | Create | Scale | Repair | Await | LeaveAlone | CannotChange


def plan(wanted: Deployment, uid: str, live: DeploymentRecord | None) -> Action:
    """Decide.

    Args:
        wanted: the Deployment that the Memcached wants.
        uid: of the Memcached.
        live: the Deployment of the same name, None when there is none.
    """
    if live is None:
        return Create()
    if not is_ours(live, uid):
        return _somebody_elses(live)
    if live.deleting:
        return Await("The Deployment is being deleted; a new one follows.")
    if live.owned == comparable(wanted):
        return Nothing()
    found = tuple(differences(without_names(wanted), decode_deployment(live.owned)))
    match found:
        case ():
            return Nothing()
        case (Difference(path="spec.replicas", wanted=int(to), live=int(from_)),):
            return Scale(live.uid, from_, to)
        case _ if fixed := next((each for each in found if each.path.startswith(_SELECTOR)), None):
            return CannotChange(
                f"The Deployment's {fixed}, which Kubernetes does not allow. Delete the Deployment: a new one follows."
            )
        case _:
            ports = tuple(each for each in found if each.path == _PORTS)
            return Repair(live.uid, found, ports, tuple(each for each in found if each.wanted is None))


def is_ours(live: DeploymentRecord, uid: str) -> bool:
    """Whether the Memcached of that uid controls the Deployment, or did until its ownerReference was removed."""
    return bool(live.owned) and (live.owner_uid if live.owner else live.made_for_uid) == uid


def _somebody_elses(live: DeploymentRecord) -> Action:
    if live.owned and live.owner == f"{KIND} {live.name}":
        # The garbage collector has not come by yet. Its owner is gone for good: uids are never used twice. (What
        # belongs to a Memcached of some other API group is a stranger's, and nothing is held of it.)
        return Await("The Deployment of a deleted Memcached of the same name is still there; waiting for it to go.")
    whose = f"belongs to {live.owner}" if live.owner else "has no owner"
    remedy = "Rename this Memcached or delete that Deployment"
    if not live.owner:
        remedy += (
            f"; to hand it over, annotate it with {desired.OWNER_UID_ANNOTATION}=UID, this Memcached's metadata.uid"
        )
    return LeaveAlone(f"A Deployment named {live.name} exists and {whose}: it is left alone. {remedy}.")


def without_names(wanted: Deployment) -> Deployment:
    """Without what `differences` need not look at: what names the object, and empty fields."""
    return decode_deployment(comparable(wanted))
