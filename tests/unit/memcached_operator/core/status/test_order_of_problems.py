"""The order in which several problems at once are reported: one condition's message has all of them."""

from __future__ import annotations

from memcached_operator.core.objects.labels import OWNER_UID_ANNOTATION
from operator_runtime.client.errors import Forbidden
from tests.unit.fake_server import Json
from tests.unit.memcached_operator.core.test_reconciler_secrets import record_event, report_running
from tests.unit.memcached_operator.features.handover.test_handover_reconciler import begun
from tests.unit.memcached_operator.running_servers import pod
from tests.unit.memcached_operator.support import NAME, NAMESPACE
from tests.unit.memcached_operator.world import World

EVERYTHING: Json = {
    "service": {},
    "disruptionBudget": {"maxUnavailable": 1},
    "networkPolicy": {"ingress": []},
    "discovery": {"configMap": {}},
}
# The API server refuses these requests, and names them.
REFUSED = (
    *("strategic_merge_patch StatefulSet", "create Service", "create ConfigMap"),
    *("merge_patch Memcached", "merge_patch Pod"),
)
# What blocks comes first; then the servers, and all else in the order in which it is kept.
IN_ORDER = (
    "refused: strategic_merge_patch StatefulSet.",
    "the passwords are wrong.",
    "sessions-1: it may not signal.",
    "refused: create Service.",
    "The PodDisruptionBudget others also selects the pods of sessions.",
    "A NetworkPolicy named sessions exists",
    "refused: create ConfigMap.",
    "Objects without an owner were created for the Memcached with uid former.",
    "refused: merge_patch Memcached.",
    "The annotations of sessions-0 for its hand-over cannot be changed: refused: merge_patch Pod.",
)


def put(world: World, kind: str, name: str, annotations: Json) -> None:
    """Make an object that has no owner."""
    metadata = {"name": name, "namespace": NAMESPACE, "uid": f"uid-of-{kind}", "annotations": annotations}
    world.api.put({"kind": kind, "metadata": metadata, "spec": {"selector": {}}})


async def test_problems_are_told_of_what_blocks_of_servers_of_other_objects_and_of_features_in_this_order() -> None:
    servers = await begun(3, finalizer=True)
    world = servers.world
    servers.size(4)
    await servers.until("Published")
    for call in REFUSED:
        verb, kind = call.split()
        world.api.refuse(verb, kind, *[Forbidden(403, "Forbidden", f"refused: {call}")] * 99)
    del world.api.objects["Memcached", NAMESPACE, NAME]["metadata"]["finalizers"]
    record_event(pod(world, 0), "PasswordsInvalid: the passwords are wrong")
    report_running(world, 1, "ReloadFailed: it may not signal")
    put(world, "NetworkPolicy", NAME, {OWNER_UID_ANNOTATION: "former"})
    put(world, "PodDisruptionBudget", "others", {})
    within_s = world.clock.now + 100
    servers.size(4, **EVERYTHING, memory="128Mi")
    await servers.control_and_reconcile(1.0)
    while not all(call in (message := world.message("Degraded")) for call in REFUSED):
        assert world.clock.now < within_s, message
        await servers.control_and_reconcile(1.0)
    places = [message.find(each) for each in IN_ORDER]
    assert -1 not in places, message
    assert places == sorted(places), message
    assert world.condition("Degraded")[1] == "DeniedByPolicy", "the reason is that of the first"


async def test_advice_is_told_of_the_service_before_that_of_passwords(world: World) -> None:
    world.memcached(size=2, service={"type": "ClusterIP"}, auth={"secretName": "a"})
    await world.writes()
    message = world.message("Discouraged")
    assert 0 <= message.find("spec.service.type") < message.find("spec.tls"), message
    assert world.condition("Discouraged")[1] == "LoadBalancedServers"
