"""Leader for life, with an API server in memory whose garbage collector is the test."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, cast

import orjson
import pytest

from operator_runtime.cache.store import ObjectKey
from operator_runtime.client.asked import Asked
from operator_runtime.client.errors import Conflict, Forbidden, NotFound, Unreachable, WriteRefused
from operator_runtime.client.resources import CONFIG_MAPS, NODES, PODS, Resource
from operator_runtime.election.leader_for_life import LifeElection

LOCK = ObjectKey("ops", "lock")
Object = dict[str, Any]


class TooManyLooksError(Exception):
    """So many looks were not enough."""


class Server:
    """ConfigMaps, Pods and Nodes by kind and name; `deletions` notes path and options."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Object] = {}
        self.deletions: list[tuple[str, Object]] = []
        self.refused: set[tuple[str, str]] = set()
        self.closed = False
        self.pod("me")

    def pod(self, name: str, *, node: str = "", deleting: bool = False, **status: str) -> Object:
        pod: Object = {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": {"nodeName": node}, "status": status}
        if deleting:
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        self.objects["pods", name] = pod
        return pod

    def led_by(self, name: str) -> None:
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"uid-{name}"}
        self.objects["configmaps", "lock"] = {"metadata": {"name": "lock", "ownerReferences": [owner]}}

    def node(self, name: str, ready: str) -> None:
        conditions = [{"type": "MemoryPressure", "status": "True"}, {"type": "Ready", "status": ready}]
        self.objects["nodes", name] = {"metadata": {"name": name}, "status": {"conditions": conditions}}

    async def get(self, resource: Resource, namespace: str | None, name: str) -> bytes:
        assert namespace == (None if resource is NODES else "ops")
        self._may("get", resource)
        if (resource.plural, name) not in self.objects:
            raise NotFound(404, "NotFound", name)
        return orjson.dumps(self.objects[resource.plural, name])

    async def create(self, resource: Resource, namespace: str | None, body: object, *, field_manager: str) -> bytes:
        assert (resource, namespace, field_manager) == (CONFIG_MAPS, "ops", "us")
        self._may("create", resource)
        if ("configmaps", "lock") in self.objects:
            raise Conflict(409, "AlreadyExists")
        self.objects["configmaps", "lock"] = cast(Object, body)
        return b"{}"

    async def request(self, method: str, path: str, *, body: bytes | None, asked: Asked | None) -> bytes:
        assert method == "DELETE"
        assert body is not None
        self._may("delete", PODS)
        self.deletions.append((path, orjson.loads(body)))
        return b"{}"

    def _may(self, verb: str, resource: Resource) -> None:
        if (verb, resource.plural) in self.refused:
            raise Forbidden(403, "Forbidden", f"cannot {verb} {resource.plural}")

    async def close(self) -> None:
        self.closed = True


@pytest.fixture
def server() -> Server:
    return Server()


def election(server: Server, *meanwhile: Callable[[], object]) -> LifeElection:
    """One that waits as often as there are things to happen meanwhile, and no more."""
    happenings = list(meanwhile)

    async def sleep(seconds: float) -> None:
        assert 0.8 <= seconds <= 16.0
        if not happenings:
            raise TooManyLooksError
        happenings.pop(0)()

    return LifeElection(server, LOCK, "me", field_manager="us", sleep=sleep, uniform=lambda least, most: most)


async def given_up(standing: LifeElection) -> None:
    with pytest.raises(TooManyLooksError):
        await standing.elected()
    with pytest.raises(WriteRefused, match="does not hold ConfigMap ops/lock"):
        standing.may_write()


async def test_the_first_makes_the_config_map_and_its_pod_owns_it(server: Server) -> None:
    async with election(server) as standing:
        with pytest.raises(WriteRefused):
            standing.may_write()
        await standing.elected()
        standing.may_write()
    assert server.objects["configmaps", "lock"] == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "lock",
            "namespace": "ops",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "me", "uid": "uid-me"}],
        },
    }
    assert server.closed
    assert ("configmaps", "lock") in server.objects, "it lives as long as the pod"


async def test_the_second_waits_until_the_garbage_collector_has_freed_it(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    server.led_by("other")
    server.pod("other", phase="Running")
    standing = election(
        server,
        lambda: None,
        lambda: server.objects.pop(("pods", "other")),
        lambda: server.objects.pop(("configmaps", "lock")),
    )
    await standing.elected()
    standing.may_write()
    assert server.deletions == []
    assert [each.message for each in caplog.records] == [
        "standing by: ConfigMap ops/lock is owned by pod other",
        "leading for life: ConfigMap ops/lock is owned by pod me",
    ]


async def test_a_container_that_starts_anew_in_the_leaders_pod_leads_on(server: Server) -> None:
    server.led_by("me")
    await election(server).elected()


@pytest.mark.parametrize(
    ("phase", "reason", "why"),
    [
        ("Failed", "Evicted", "Evicted"),
        ("Failed", "Preempting", "Preempting"),
        ("Failed", "Terminated", "Terminated"),
        ("Failed", "", "Failed"),
        ("Succeeded", "", "Succeeded"),
    ],
)
async def test_a_leader_that_will_never_run_again_is_deleted(
    server: Server, phase: str, reason: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.led_by("other")
    server.pod("other", phase=phase, reason=reason)
    await given_up(election(server))
    assert server.deletions == [("/api/v1/namespaces/ops/pods/other", {"preconditions": {"uid": "uid-other"}})]
    assert f"deleted pod other, which led by ConfigMap ops/lock: it has ended for good ({why})" in caplog.text


@pytest.mark.parametrize("ready", ["False", "Unknown"])
async def test_a_leader_on_a_lost_node_is_deleted_without_waiting_for_it(server: Server, ready: str) -> None:
    server.led_by("other")
    server.pod("other", node="n1", deleting=True, phase="Running")
    server.node("n1", ready)
    await given_up(election(server))
    options = {"preconditions": {"uid": "uid-other"}, "gracePeriodSeconds": 0}
    assert server.deletions == [("/api/v1/namespaces/ops/pods/other", options)]


async def test_a_leader_whose_node_is_no_longer_there_is_deleted(server: Server) -> None:
    server.led_by("other")
    server.pod("other", node="n1", deleting=True, phase="Running")
    await given_up(election(server))
    assert len(server.deletions) == 1


@pytest.mark.parametrize(
    ("pod", "ready"),
    [
        ({"phase": "Running", "node": "n1"}, "Unknown"),
        ({"phase": "Running", "node": "n1", "deleting": True}, "True"),
        ({"phase": "Pending", "deleting": True}, "True"),
    ],
    ids=["node not yet given up", "ends on a good node", "never was on a node"],
)
async def test_any_other_leader_is_left_alone(server: Server, pod: dict[str, Any], ready: str) -> None:
    server.led_by("other")
    server.pod("other", **pod)
    server.node("n1", ready)
    await given_up(election(server))
    assert server.deletions == []


async def test_a_pod_that_has_only_the_leaders_name_is_left_alone(server: Server) -> None:
    server.led_by("other")
    server.pod("other", phase="Failed", reason="Evicted")["metadata"]["uid"] = "another"
    await given_up(election(server))
    assert server.deletions == []


async def test_permissions_that_are_missing_are_named_once_and_it_waits_on(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.led_by("other")
    server.pod("other", node="n1", deleting=True)
    server.refused = {("get", "nodes")}
    await given_up(election(server, lambda: None, lambda: None))
    server.node("n1", "False")
    server.refused = {("delete", "pods")}
    await given_up(election(server))
    warnings = [each.message for each in caplog.records if each.levelno == logging.WARNING]
    assert [each.partition(": ")[0] for each in warnings] == [
        "cannot see whether the leader's node is lost",
        "cannot delete the leader's pod",
    ]
    assert warnings[0].endswith("Grant get on nodes")
    assert warnings[1].endswith("Grant delete on pods, and get on nodes, to the account")


async def test_a_config_map_that_no_pod_owns_is_said(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    server.objects["configmaps", "lock"] = {"metadata": {"name": "lock"}}
    await given_up(election(server))
    assert "ConfigMap ops/lock is owned by no pod, so that nothing will free it: delete it by hand" in caplog.text


async def test_a_pod_that_is_not_there_is_asked_for_by_its_variable(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    own = server.objects.pop(("pods", "me"))
    await election(server, lambda: server.objects.update({("pods", "me"): own})).elected()
    assert "there is no pod me in namespace ops; set POD_NAME to this pod's name" in caplog.text


async def test_a_server_that_is_away_is_waited_for(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    standing = election(server, monkeypatch.undo)

    async def away(*_: object, **__: object) -> bytes:
        raise Unreachable("away")

    monkeypatch.setattr(server, "create", away)
    await standing.elected()
    standing.may_write()
    assert standing.complaint() is None
