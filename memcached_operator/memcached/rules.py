"""Pure: how the Deployment of a Memcached is kept: what differs, by which write that is put right, and whose it is."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memcached_operator.memcached import desired
from memcached_operator.memcached.objects import Deployment, comparable, decode_deployment
from memcached_operator.memcached.records import DeploymentRecord
from operator_runtime import Difference, ObjectKey, Patch, Rules, differences

REPLICAS = "spec.replicas"
_PORTS = f"spec.template.spec.containers[{desired.CONTAINER}].ports"


def differ(wanted: Deployment, live: DeploymentRecord) -> Sequence[Difference]:
    """The fields of a Deployment of ours that are not as wanted."""
    if live.owned == comparable(wanted):
        return ()
    return tuple(differences(without_names(wanted), decode_deployment(live.owned)))


def cheapest(wanted: Deployment, live: DeploymentRecord, found: Sequence[Difference]) -> Patch | None:
    """The patch that puts these differences right, or those of them that an apply would not; None for an apply.

    Replicas alone are patched, at half the API server's cost of an apply. Ports merge by their number, so an apply
    would leave an edited one beside ours, under the same name, and be refused. Of fields that must not be there, an
    apply takes away only what nobody else has set.
    """
    if [each.path for each in found] == [REPLICAS]:
        return Patch({"spec": {"replicas": wanted.spec.replicas}}, found)
    ports = [each for each in found if each.path == _PORTS]
    excess = [each for each in found if each.wanted is None]
    if not ports and not excess:
        return None
    pod: dict[str, object] = {}
    if ports:
        pod["containers"] = [{"name": desired.CONTAINER, "ports": [{"$patch": "replace"}, *_ports(wanted)]}]
    if excess:
        pod["securityContext"] = {each.path.rpartition(".")[2]: None for each in excess}
    return Patch({"spec": {"template": {"spec": pod}}}, [*ports, *excess], strategic=True)


def is_ours(live: DeploymentRecord, uid: str) -> bool:
    """Whether the Memcached of that uid controls the Deployment, or did until its ownerReference was removed."""
    return bool(live.form) and (live.owner_uid if live.owner else live.made_for_uid) == uid


def without_names(wanted: Deployment) -> Deployment:
    """Without what `differences` need not look at: what names the object, and empty fields."""
    return decode_deployment(comparable(wanted))


def _ports(wanted: Deployment) -> list[dict[str, object]]:
    template = wanted.spec.template
    (container,) = (template.spec.containers if template and template.spec else None) or ()
    ports: list[dict[str, object]] = msgspec.to_builtins(container.ports)
    return ports


RULES: Rules[Deployment, DeploymentRecord] = Rules(
    differences=differ,
    key=lambda wanted: ObjectKey(wanted.metadata.namespace or "", wanted.metadata.name or ""),
    body=desired.body,
    patch=cheapest,
    is_ours=is_ours,
    handover=f"annotate it with {desired.OWNER_UID_ANNOTATION}=UID, this Memcached's metadata.uid",
)
