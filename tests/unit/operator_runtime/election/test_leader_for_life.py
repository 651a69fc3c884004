"""Leader for life, with an API server in memory whose garbage collector is the test."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest

from operator_runtime.cache.store import ObjectKey
from operator_runtime.client.errors import Forbidden, KubeError, Unreachable, WriteRefused
from operator_runtime.election.leader_for_life import LifeElection
from tests.unit.fake_server import FakeServer, Sent

Object = dict[str, Any]
LOCK = "/api/v1/namespaces/ops/configmaps/lock"
PODS = "/api/v1/namespaces/ops/pods"


class TooManyReadsError(Exception):
    """So many reads were not enough."""


class Server(FakeServer):
    """A ConfigMap, Pods and Nodes; `refused` has the methods and paths that the account may not."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: set[tuple[str, str]] = set()
        self.closed = False
        self.pod("me")

    def pod(self, name: str, *, uid: str = "", node: str = "", deleting: bool = False, **status: str) -> None:
        metadata = {"name": name, "namespace": "ops", "uid": uid or f"uid-{name}"}
        if deleting:
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        self.store(f"{PODS}/{name}", {"metadata": metadata, "spec": {"nodeName": node}, "status": status})

    def led_by(self, name: str) -> None:
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"uid-{name}"}
        self.store(LOCK, {"metadata": {"name": "lock", "ownerReferences": [owner]}})

    def node(self, ready: str) -> None:
        conditions = [{"type": "MemoryPressure", "status": "True"}, {"type": "Ready", "status": ready}]
        self.store("/api/v1/nodes/n1", {"metadata": {"name": "n1"}, "status": {"conditions": conditions}})

    @property
    def deletions(self) -> list[tuple[str, Object]]:
        return [(each.path, each.body) for each in self.sent if each.method == "DELETE"]

    def refusal(self, sent: Sent) -> KubeError | None:
        return Forbidden(403) if (sent.method, sent.path) in self.refused else super().refusal(sent)

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
            raise TooManyReadsError
        happenings.pop(0)()

    lock = ObjectKey("ops", "lock")
    return LifeElection(server, lock, "me", field_manager="us", sleep=sleep, uniform=lambda least, most: most)


async def given_up(standing: LifeElection) -> None:
    with pytest.raises(TooManyReadsError):
        await standing.elected()
    with pytest.raises(WriteRefused, match="does not hold ConfigMap ops/lock"):
        standing.may_write()


async def test_the_first_makes_the_config_map_and_its_pod_owns_it(server: Server) -> None:
    async with aclosing(election(server)) as standing:
        with pytest.raises(WriteRefused):
            standing.may_write()
        await standing.elected()
        standing.may_write()
    assert server.last.body == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "lock",
            "namespace": "ops",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "me", "uid": "uid-me"}],
        },
    }
    assert server.closed
    assert LOCK in server.by_path, "it lives as long as the pod"


async def test_the_second_waits_until_the_garbage_collector_has_freed_it(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    server.led_by("other")
    server.pod("other", phase="Running")
    gone = [lambda path=path: server.by_path.pop(path) for path in (f"{PODS}/other", LOCK)]
    standing = election(server, lambda: None, *gone)
    await standing.elected()
    standing.may_write()
    assert server.deletions == []
    assert [each.message for each in caplog.records] == [
        "waiting: ConfigMap ops/lock is owned by pod other",
        "leading for life: ConfigMap ops/lock is owned by pod me",
    ]


@pytest.mark.parametrize(
    ("phase", "reason", "why"),
    [("Failed", "Evicted", "Evicted"), ("Failed", "", "Failed"), ("Succeeded", "", "Succeeded")],
)
async def test_a_leader_that_will_never_run_again_is_deleted(
    server: Server, phase: str, reason: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.led_by("other")
    server.pod("other", phase=phase, reason=reason)
    await given_up(election(server))
    assert server.deletions == [(f"{PODS}/other", {"preconditions": {"uid": "uid-other"}})]
    assert f"deleted pod other, which led by ConfigMap ops/lock: it has ended for good ({why})" in caplog.text


@pytest.mark.parametrize("ready", ["False", "Unknown", "", None], ids=["not ready", "unknown", "silent", "gone"])
async def test_a_leader_on_a_lost_node_is_deleted_without_waiting_for_it(server: Server, ready: str | None) -> None:
    server.led_by("other")
    server.pod("other", node="n1", deleting=True, phase="Running")
    if ready is not None:
        server.node(ready)
    await given_up(election(server))
    options = {"preconditions": {"uid": "uid-other"}, "gracePeriodSeconds": 0}
    assert server.deletions == [(f"{PODS}/other", options)]


@pytest.mark.parametrize(
    ("pod", "ready"),
    [
        ({"phase": "Running", "node": "n1"}, "Unknown"),
        ({"phase": "Running", "node": "n1", "deleting": True}, "True"),
        ({"phase": "Pending", "deleting": True}, "True"),
        ({"phase": "Failed", "reason": "Evicted", "uid": "another"}, "True"),
    ],
    ids=["node not yet given up", "ends on a good node", "never was on a node", "has only the leader's name"],
)
async def test_any_other_leader_is_left_alone(server: Server, pod: dict[str, Any], ready: str) -> None:
    server.led_by("other")
    server.pod("other", **pod)
    server.node(ready)
    await given_up(election(server))
    assert server.deletions == []


async def test_permissions_that_are_missing_are_named_once_and_it_waits_on(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.led_by("other")
    server.pod("other", node="n1", deleting=True)
    server.refused = {("GET", "/api/v1/nodes/n1")}
    await given_up(election(server, lambda: None, lambda: None))
    server.node("False")
    server.refused = {("DELETE", f"{PODS}/other")}
    await given_up(election(server))
    first, second = [each.message for each in caplog.records if each.levelno == logging.WARNING]
    assert first.startswith("cannot see whether the leader's node is lost: ")
    assert first.endswith("Grant get on nodes")
    assert second.startswith("cannot delete the leader's pod: ")
    assert second.endswith("Grant delete on pods, and get on nodes, to the account")


async def test_a_config_map_that_no_pod_owns_is_said(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    server.store(LOCK, {"metadata": {"name": "lock"}})
    await given_up(election(server))
    assert "ConfigMap ops/lock is owned by no pod, so that nothing will free it: delete it by hand" in caplog.text


async def test_a_pod_that_is_not_there_is_asked_for_by_its_variable(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    del server.by_path[f"{PODS}/me"]
    await election(server, lambda: server.pod("me")).elected()
    assert "there is no pod me in namespace ops; set POD_NAME to this pod's name" in caplog.text


async def test_a_server_that_is_away_is_waited_for_and_a_container_that_starts_anew_leads_on(server: Server) -> None:
    server.refusals["POST"] = [Unreachable("away")]
    for waits in ([lambda: None], []):
        standing = election(server, *waits)
        await standing.elected()
        standing.may_write()
