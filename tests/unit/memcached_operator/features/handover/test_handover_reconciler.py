"""A hand-over through the reconciler: which peers servers get, what is written, and what is reported."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from memcached_operator.core.objects.labels import OUTDATED_ITEMS_ANNOTATION, PEERS_ANNOTATION
from memcached_operator.features.handover.handover_reconciler import RETRY_REFUSED_S, SET_AGAIN_S
from memcached_operator.features.handover.purge import Purged
from memcached_operator.features.handover.server_state import HandoverState, PeersPort, Unsupported
from memcached_operator.features.handover.situation import (
    CONFIRMED_WITHIN_S,
    MARKER_TTL_S,
    READY_WITHIN_S,
    Peers,
    peers_of,
)
from memcached_operator.servers.server_connection import ErrorKind, Failure
from operator_runtime.client.errors import Conflict, Forbidden, KubeError, ServerError
from tests.unit.fake_server import Json, Sent
from tests.unit.memcached_operator.running_servers import control, get_ready, pod, stateful_set
from tests.unit.memcached_operator.support import NAME, NAMESPACE, NO_RIGHT
from tests.unit.memcached_operator.world import World

FOR_S, THREADS = 60, 4
SILENT = Failure(ErrorKind.SILENT, "no answer within 1 s")
HANDING_OVER = ["Preparing", "Connecting", "Published", "Disconnecting", "Complete"]


class Servers:
    """Servers that read at once what their pods' annotations say.

    Attributes:
        unsupported: addresses of those that run no proxy.
        silent: of those that do not answer.
        calls: what was done at which.
        purge_fails: addresses of those that fail to delete old copies, once for each time that they are in it.
        requeue_s: seconds until the next reconcile, as the last one said.
        purged: is set when a purge may end.
    """

    def __init__(self, *, finalizer: bool = False) -> None:
        self.world = World(peers_port=self.port, finalizer=finalizer)
        self.unsupported: set[str] = set()
        self.silent: set[str] = set()
        self.calls: list[tuple[str, str]] = []
        self.purge_fails: list[str] = []
        self.requeue_s: float | None = None
        self.purged = asyncio.Event()
        self.purged.set()
        self.steps: list[str | None] = []
        self._addresses: dict[str, str] = {}

    @property
    def port(self) -> PeersPort:
        return PeersPort(self.state_of, self.purge, self.empty)

    def lead_anew(self) -> None:
        """Let another operator lead, which knows what the cluster shows."""
        before = self.world
        self.world = World(api=before.api, peers_port=self.port)
        self.world.clock.advance_to(before.clock.now)

    async def state_of(self, address: str, timeout_s: float) -> HandoverState | Unsupported | Failure:
        self.calls.append(("state", address))
        if address in self.silent:
            return SILENT
        if address in self.unsupported:
            return Unsupported()
        peers = self.peers().get(address)
        return HandoverState(THREADS, peers.generation * THREADS if peers else 0)

    async def empty(self, address: str, timeout_s: float) -> Purged | Failure:
        self.calls.append(("empty", address))
        return SILENT if address in self.silent else Purged(10, 10)

    async def purge(self, address: str, unused_since_s: float, timeout_s: float) -> Purged | Failure:
        self.calls.append(("purge", address))
        await self.purged.wait()
        if address not in self.purge_fails:
            return Purged(10, 1)
        self.purge_fails.remove(address)
        return SILENT

    def pods(self) -> Iterator[Json]:
        return (each for key, each in self.world.api.objects.items() if key[0] == "Pod")

    def uids(self) -> set[str]:
        return {each["metadata"]["uid"] for each in self.pods()}

    def lose(self, ordinal: int) -> None:
        """Let a pod be gone."""
        del self.world.api.objects["Pod", NAMESPACE, f"{NAME}-{ordinal}"]

    def called(self, call: str) -> list[str]:
        """At which addresses that was done."""
        return [address for name, address in self.calls if name == call]

    def are_connected(self) -> bool:
        """Whether each has all others as peers."""
        peers = self.peers()
        return all(each is not None and {*each.addresses} == peers.keys() - {own} for own, each in peers.items())

    def are_disconnected(self) -> bool:
        return all(each is not None and not each.addresses for each in self.peers().values())

    def peers(self) -> dict[str, Peers | None]:
        """By address, what its pod's annotation says."""
        return {
            each["status"]["podIP"]: peers_of(each["metadata"]["annotations"].get(PEERS_ANNOTATION, ""))
            for each in self.pods()
        }

    def is_outdated(self, ordinal: int) -> bool:
        return OUTDATED_ITEMS_ANNOTATION in pod(self.world, ordinal)["metadata"]["annotations"]

    def size(self, size: int, **spec: Any) -> None:
        found = {"handover": {"periodSeconds": FOR_S}, "workload": "StatefulSet"} | spec
        self.world.memcached(size=size, drainPeriodSeconds=1, **found)

    def counted(self) -> dict[str, float]:
        """How many changes of the list had a hand-over, and had none."""
        families = {each.name: each for each in self.world.reconciler.families()}
        return {each.labels["result"]: each.value for each in families["memcached_operator_handovers"].samples}

    @property
    def listed(self) -> int:
        return len(self.world.status.get("serverList", ()))

    def count(self) -> int:
        return len([*self.pods()])

    def control(self) -> None:
        """What the StatefulSet's controller does, and the network: each pod has an address of its own."""
        objects = self.world.api.objects
        if ("StatefulSet", NAMESPACE, NAME) not in objects:
            return
        control(self.world)
        for each in [*self.pods()]:
            if each["metadata"]["uid"] not in self._addresses:
                self._addresses[each["metadata"]["uid"]] = f"10.1.0.{len(self._addresses)}"
                each["status"]["podIP"] = self._addresses[each["metadata"]["uid"]]
                self.world.api.put(each)
            if int(each["metadata"]["name"].rpartition("-")[2]) >= stateful_set(self.world)["spec"]["replicas"]:
                del objects["Pod", NAMESPACE, each["metadata"]["name"]]

    async def control_and_reconcile(self, after_s: float = 0.3) -> None:
        """Let Kubernetes' controllers act, and reconcile."""
        self.control()
        self.world.show()
        await self.reconcile(after_s)

    async def reconcile(self, after_s: float) -> None:
        """Reconcile with what is shown."""
        self.requeue_s = (await self.world.reconcile(after_s=after_s)).requeue_after_s
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        step = self.world.status.get("handover", {}).get("step")
        if not self.steps or self.steps[-1] != step:
            self.steps.append(step)

    async def pass_time(self, reconciles: int, each_s: float = 0.3) -> None:
        for _ in range(reconciles):
            await self.control_and_reconcile(each_s)

    async def until(self, step: str, reconciles: int = 100) -> None:
        for _ in range(reconciles):
            if self.world.status.get("handover", {}).get("step") == step:
                return
            await self.control_and_reconcile(1.0)
        raise AssertionError(f"{self.steps} and not {step}: {self.world.status}")


async def begun(size: int, *, finalizer: bool = False) -> Servers:
    """Servers that have handed over for long."""
    servers = Servers(finalizer=finalizer)
    servers.size(size)
    await servers.until("Complete")
    servers.world.clock.advance(3600)
    await servers.control_and_reconcile()
    servers.steps.clear()
    servers.calls.clear()
    servers.world.recorder.events.clear()
    return servers


async def changing(before: int, after: int, step: str) -> Servers:
    """Servers whose list changes, at that step."""
    servers = await begun(before)
    servers.size(after)
    await servers.until(step)
    return servers


async def test_the_list_grows_when_all_servers_have_each_other_as_peers() -> None:
    servers = await begun(3)
    servers.size(4)
    for step in HANDING_OVER[:2]:
        await servers.until(step)
        assert servers.listed == 3
        assert servers.world.condition("Progressing") == ("True", "Scaling")
        assert servers.world.condition("HandingOver") == ("True", step)
    await servers.until("Published")
    assert servers.listed == 4
    assert servers.world.message("Progressing").startswith(
        "4 servers are desired, 4 exist, 4 are ready. Servers fill themselves from each other until "
    )
    assert servers.world.message("Progressing").endswith(servers.world.message("HandingOver"))
    assert servers.are_connected()
    assert sorted(servers.called("purge")) == sorted(servers.peers())
    assert not servers.called("empty")
    await servers.until("Complete")
    assert servers.steps == HANDING_OVER
    assert servers.are_disconnected()
    assert [each.reason for each in servers.world.recorder.events].count("Handover") >= len(HANDING_OVER) - 2
    await servers.pass_time(2)
    assert servers.world.condition("Ready") == ("True", "AllServersReady")
    assert servers.world.condition("HandingOver") == ("False", "Complete")
    assert servers.counted() == {"handed_over": 1, "given_up": 0}


async def test_a_list_that_does_not_change_has_each_server_queried_once() -> None:
    servers = await begun(3)
    await servers.pass_time(5, 60)
    assert servers.calls == []


async def test_servers_that_cannot_hand_over_are_reported_and_keep_the_list_from_nothing() -> None:
    servers = await begun(2)
    servers.size(3)
    await servers.control_and_reconcile()
    servers.unsupported = {*servers.peers()}
    await servers.until("Complete")
    assert servers.listed == 3
    assert servers.world.condition("Discouraged") == ("True", "HandoverUnavailable")
    assert "cannot hand over: they need memcached 1.6.45 or newer" in servers.world.message("Discouraged")
    assert "HandoverUnavailable" in [each.reason for each in servers.world.recorder.events]
    await servers.control_and_reconcile()
    assert servers.counted() == {"handed_over": 0, "given_up": 1}


async def test_a_server_that_does_not_confirm_has_the_list_change_without_a_hand_over_and_is_reported() -> None:
    servers = await changing(2, 3, "Connecting")
    servers.silent = {pod(servers.world, 1)["status"]["podIP"]}
    await servers.until("Disconnecting")
    assert servers.listed == 3
    message = servers.world.message("Discouraged")
    expected = (
        f"The list of servers changed without a hand-over, as {NAME}-1 did not confirm their peers. Clients may have "
    )
    assert message.startswith(expected)
    servers.silent.clear()
    await servers.pass_time(5, 1.0)
    assert servers.world.condition("Discouraged") == ("True", "HandoverUnavailable"), "clients have two lists"
    servers.world.clock.advance(FOR_S)
    await servers.pass_time(2)
    assert servers.world.condition("Discouraged") == ("False", "AsExpected")


async def test_a_failed_purge_has_the_list_change_without_a_hand_over() -> None:
    servers = await changing(2, 3, "Preparing")
    servers.purge_fails = [pod(servers.world, 1)["status"]["podIP"]] * 999
    await servers.pass_time(10, 1.0)
    assert servers.steps[-1] == "Preparing"
    servers.world.clock.advance(READY_WITHIN_S)
    await servers.until("Complete")
    expected = f"as {NAME}-1 did not delete what former owners have kept"
    assert expected in servers.world.message("Discouraged")


async def test_a_server_that_did_not_answer_once_has_old_copies_deleted_later() -> None:
    servers = await changing(2, 3, "Preparing")
    failing = pod(servers.world, 1)["status"]["podIP"]
    servers.purge_fails = [failing]
    await servers.until("Complete")
    assert servers.steps == HANDING_OVER
    purged = servers.called("purge")
    assert (len(purged), purged.count(failing)) == (4, 2)


async def test_a_server_that_gets_ready_during_the_purge_deletes_old_copies_too() -> None:
    servers = await begun(4)
    servers.purged.clear()
    servers.size(3)
    leaving = pod(servers.world, 3)["status"]["podIP"]
    get_ready(servers.world, 3, ready=False)
    await servers.until("Preparing")
    while ("purge", pod(servers.world, 0)["status"]["podIP"]) not in servers.calls:
        await servers.control_and_reconcile(1.0)
        get_ready(servers.world, 3, ready=False)
    assert ("purge", leaving) not in servers.calls
    get_ready(servers.world, 3)
    servers.purged.set()
    await servers.until("Connecting")
    assert servers.calls.count(("purge", leaving)) == 1


async def test_a_rollout_waits_from_the_purge_on() -> None:
    servers = await begun(4)
    servers.purged.clear()
    servers.size(3, image="memcached:1.6.50", rollout={"minReadySeconds": 5})
    await servers.until("Preparing")
    for _ in range(100):
        await servers.control_and_reconcile(1.0)
        if servers.called("purge"):
            break
    uids = servers.uids()
    await servers.pass_time(10, 1.0)
    assert servers.steps[-1] == "Preparing"
    servers.purged.set()
    await servers.until("Published")
    assert servers.steps == HANDING_OVER[:3]
    assert servers.uids() == uids


async def test_without_the_right_to_patch_pods_the_list_changes_without_a_hand_over() -> None:
    servers = await begun(2)
    servers.world.api.refuse("merge_patch", "Pod", *[Forbidden(403, "Forbidden", NO_RIGHT)] * 9)
    servers.size(3)
    await servers.until("Preparing")
    await servers.until("Complete")
    assert servers.listed == 3
    assert "the API server refused to change the annotations" in servers.world.message("Discouraged")


async def test_who_may_not_take_peers_away_any_more_does_not_try_for_ever() -> None:
    servers = await changing(2, 3, "Published")
    servers.world.clock.advance(FOR_S + MARKER_TTL_S)
    servers.world.api.refuse("merge_patch", "Pod", *[Forbidden(403, "Forbidden", NO_RIGHT)] * 99)
    sent = 0
    for _ in range(70):
        await servers.control_and_reconcile(1.0)
        sent += servers.world.api.verbs().count("merge_patch Pod")
    assert 0 < sent <= 3 * (1 + 70 // RETRY_REFUSED_S)
    assert servers.steps[-1] == "Complete"
    assert servers.world.condition("Degraded") == ("True", "Forbidden")


async def test_where_a_webhook_removes_the_annotation_peers_are_set_for_a_while_and_not_without_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    servers = await changing(2, 3, "Connecting")
    store, sent = servers.world.api.store, 0

    def store_without_it(path: str, body: Json) -> Json:
        body["metadata"].get("annotations", {}).pop(PEERS_ANNOTATION, None)
        return store(path, body)

    for each in [*servers.pods()]:
        each["metadata"]["annotations"].pop(PEERS_ANNOTATION, None)
    monkeypatch.setattr(servers.world.api, "store", store_without_it)
    for _ in range(CONFIRMED_WITHIN_S + 2):
        await servers.control_and_reconcile(SET_AGAIN_S)
        if patches := servers.world.api.verbs().count("merge_patch Pod"):
            assert servers.requeue_s
            assert servers.requeue_s > SET_AGAIN_S / 2
            sent += patches
    assert 0 < sent <= 3 * CONFIRMED_WITHIN_S / SET_AGAIN_S
    assert servers.listed == 3


async def test_where_the_api_server_fails_to_change_pods_the_list_changes_without_a_hand_over() -> None:
    servers = await changing(2, 3, "Connecting")
    servers.world.api.refuse("merge_patch", "Pod", *[ServerError(500, "InternalError", "failed calling webhook")] * 999)
    for _ in range(CONFIRMED_WITHIN_S + 2):
        with suppress(ServerError):
            await servers.control_and_reconcile(1.0)
    assert servers.listed == 3
    assert "did not confirm their peers" in servers.world.message("Discouraged")


async def test_a_pod_that_another_changed_meanwhile_gets_peers_once_the_cache_shows_it() -> None:
    servers = await begun(2)
    servers.world.api.refuse("merge_patch", "Pod", Conflict(409, "Conflict", "the object has been modified"))
    servers.size(3)
    await servers.until("Preparing")
    await servers.until("Complete")
    assert servers.steps == HANDING_OVER


@pytest.mark.parametrize("step", HANDING_OVER[:-1])
async def test_another_leader_goes_on_with_each_step(step: str) -> None:
    servers = await changing(3, 4, step)
    servers.lead_anew()
    await servers.until("Complete")
    assert servers.steps == HANDING_OVER


@pytest.mark.parametrize("step", HANDING_OVER[1:-1])
@pytest.mark.parametrize("refused", [False, True])
async def test_without_the_field_in_the_midst_servers_stay_until_nobody_has_them_as_peers(
    step: str, refused: bool
) -> None:
    servers = await changing(3, 2, step)
    if refused:
        servers.world.api.refuse("merge_patch", "Pod", *[Forbidden(403, "Forbidden", NO_RIGHT)] * 999)
    servers.size(2, handover=None)
    for _ in range(80):
        await servers.control_and_reconcile(1.0)
        connected = [each for each in servers.peers().values() if each is not None and each.addresses]
        assert refused or not connected or servers.count() == 3
    assert "handover" not in servers.world.status
    assert "HandingOver" not in {each["type"] for each in servers.world.status["conditions"]}
    assert (servers.listed, servers.count()) == (2, 2)


async def test_a_leader_that_comes_after_a_server_was_emptied_lets_it_keep_what_it_has_since() -> None:
    servers = await changing(3, 4, "Published")
    servers.lose(1)
    await servers.pass_time(10)
    assert len(servers.called("empty")) == 2
    servers.lead_anew()
    await servers.pass_time(10)
    assert len(servers.called("empty")) == 2


@pytest.mark.parametrize(
    ("refusal", "passed_s"),
    [(Forbidden(403, "Forbidden", NO_RIGHT), RETRY_REFUSED_S), (ServerError(500, "InternalError", "no etcd"), 1.0)],
)
async def test_a_server_is_emptied_no_third_time_however_often_its_pod_cannot_say_so(
    refusal: Forbidden | ServerError, passed_s: float
) -> None:
    servers = await changing(3, 4, "Published")
    servers.lose(1)
    for _ in range(20):
        await servers.control_and_reconcile()
        if servers.is_outdated(1) and servers.are_connected():
            break
    assert len(servers.called("empty")) == 1
    servers.world.api.refuse("merge_patch", "Pod", *[refusal] * 5)
    for _ in range(5):
        with suppress(ServerError):
            await servers.control_and_reconcile(passed_s)
        assert servers.is_outdated(1)
    while servers.is_outdated(1):
        with suppress(ServerError):
            await servers.control_and_reconcile(RETRY_REFUSED_S)
    assert not servers.is_outdated(1)
    assert len(servers.called("empty")) == 2


async def test_a_hand_over_comes_to_its_end_while_the_specification_cannot_be_read() -> None:
    servers = await changing(3, 4, "Published")
    servers.size(4, extraArgs=["-M"])
    await servers.pass_time(2, 1.0)
    assert servers.world.condition("Degraded") == ("True", "InvalidSpec")
    assert servers.world.condition("HandingOver") == ("True", "Published")
    assert servers.world.message("HandingOver").startswith("Servers fill themselves from each other until ")
    assert servers.world.condition("Discouraged") == ("Unknown", "InvalidSpec")
    lost = pod(servers.world, 1)["status"]["podIP"]
    servers.lose(1)
    servers.world.show()
    await servers.world.reconcile()
    assert all(each is not None and lost not in each.addresses for each in servers.peers().values())
    assert servers.steps[-1] == "Published"
    await servers.until("Complete", reconciles=FOR_S + 20)
    assert servers.listed == 4
    assert servers.are_disconnected()


@pytest.mark.parametrize(
    "refusal", [Forbidden(403, "Forbidden", NO_RIGHT), ServerError(500, "InternalError", "failed calling webhook")]
)
async def test_a_mark_that_cannot_be_taken_off_leaves_nobody_a_peer(
    monkeypatch: pytest.MonkeyPatch, refusal: Forbidden | ServerError
) -> None:
    servers = await changing(4, 2, "Published")
    servers.lose(1)
    judge = servers.world.api.refusal

    def refuse(sent: Sent) -> KubeError | None:
        annotations = (sent.body or {}).get("metadata", {}).get("annotations", {})
        return refusal if annotations.get(OUTDATED_ITEMS_ANNOTATION, "") is None else judge(sent)

    monkeypatch.setattr(servers.world.api, "refusal", refuse)
    for _ in range(FOR_S + CONFIRMED_WITHIN_S + 60):
        with suppress(ServerError):
            await servers.control_and_reconcile(1.0)
    assert (servers.steps[-1], servers.count()) == ("Complete", 2)
    assert servers.is_outdated(1)
    assert servers.are_disconnected()


async def test_servers_have_their_time_anew_once_the_specification_can_be_read_again() -> None:
    servers = await changing(3, 4, "Preparing")
    servers.size(4, extraArgs=["-M"])
    await servers.pass_time(8, READY_WITHIN_S / 8)
    servers.size(6)
    await servers.until("Published")
    assert servers.listed == 6
    assert servers.steps == ["Preparing", "Complete", *HANDING_OVER[:3]]


async def test_another_size_has_its_own_time_to_get_ready() -> None:
    servers = await begun(3)

    async def pass_time(seconds: int) -> None:
        """Pass it while the server 4 does not get ready, so that only the server 3 could be listed."""
        for _ in range(seconds // 10):
            servers.control()
            get_ready(servers.world, 4, ready=False)
            servers.world.show()
            await servers.reconcile(10.0)

    servers.size(5)
    await servers.until("Preparing")
    await pass_time(READY_WITHIN_S - 20)
    assert "does not change until these are ready" in servers.world.message("Progressing")
    servers.size(6)
    await pass_time(60)
    assert (servers.steps, servers.listed) == (["Preparing"], 3)
    await pass_time(READY_WITHIN_S)
    assert (servers.steps[:2], servers.listed) == (["Preparing", "Complete"], 5)


async def test_a_list_that_is_to_change_stays_while_the_specification_cannot_be_read() -> None:
    servers = await changing(3, 4, "Connecting")
    servers.size(4, extraArgs=["-M"])
    await servers.until("Complete")
    assert servers.listed == 3
    servers.size(4)
    await servers.until("Published")
    assert servers.listed == 4


@pytest.mark.parametrize("lost", [("handover",), ("handover", "serverList", "workload", "draining")])
async def test_a_status_that_another_client_took_away_takes_no_peers_away(lost: tuple[str, ...]) -> None:
    servers = await changing(4, 3, "Published")
    servers.world.clock.advance(FOR_S / 2)
    memcached = servers.world.api.objects["Memcached", NAMESPACE, NAME]
    for field in lost:
        memcached["status"].pop(field, None)
    servers.world.api.put(memcached)
    servers.world.recorder.events.clear()
    await servers.pass_time(FOR_S - 10, 1.0)
    assert all(each is not None and each.addresses for each in servers.peers().values())
    assert (servers.steps[-1], servers.listed, servers.count()) == ("Published", 3, 4)
    (event,) = (each for each in servers.world.recorder.events if each.reason == "HandoverResumed")
    assert event.type == "Warning"
    await servers.until("Complete")
    await servers.pass_time(3)
    assert servers.count() == 3


async def test_where_the_field_is_omitted_while_a_server_is_emptied_that_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = await changing(3, 4, "Published")
    servers.lose(1)
    ended = asyncio.Event()

    async def never(address: str, timeout_s: float) -> Purged | Failure:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError(address, timeout_s)

    monkeypatch.setattr(servers, "empty", never)
    servers.world = World(api=servers.world.api, peers_port=PeersPort(servers.state_of, servers.purge, never))
    servers.size(4)
    await servers.pass_time(10)
    assert not ended.is_set()
    servers.size(4, handover=None)
    await servers.pass_time(80, 1.0)
    assert "handover" not in servers.world.status
    assert ended.is_set()
