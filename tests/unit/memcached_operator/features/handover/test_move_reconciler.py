"""A rolling change whose servers move, through the reconciler: what is written step by step, and what is reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memcached_operator.core.objects.labels import HOLDER_ANNOTATION, PEERS_ANNOTATION
from memcached_operator.features.handover.move.item_copy import Transferred
from memcached_operator.features.handover.move.move_steps import HOLDER_WITHIN_S
from memcached_operator.features.handover.server_state import DONE, PeersPort
from memcached_operator.servers.server_connection import Failure
from operator_runtime.client.errors import Conflict, Forbidden, StatusCause, TooManyRequests
from tests.unit.fake_server import Json
from tests.unit.memcached_operator.features.handover.test_handover_reconciler import FOR_S, SILENT, Servers
from tests.unit.memcached_operator.running_servers import EVICT, pod, reasons, resize, rfc3339, stateful_set
from tests.unit.memcached_operator.support import NAME, NAMESPACE, NO_RIGHT, live_pod

HOLDER = f"{NAME}-holder"
HELD = f"{HOLDER}-0"
STEPS = ["Preparing", "Connecting", "Copying", "Closing", "Replacing", "Restoring", "Disconnecting"]


class MovingServers(Servers):
    """Servers whose items move, and their holder.

    Attributes:
        transfers: the addresses of each pass.
        lacking: what the next passes find, the next one first; then nothing lacks.
        holder_ready: a holder gets ready.
        holder_stays: one that is deleted does not end, as on a node that is lost.
        has_room: a server is made while there is a holder.
        moves: steps of each move as the status had them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.transfers: list[tuple[str, str]] = []
        self.said: list[tuple[str, str]] = []
        self.lacking: list[int] = []
        self.holder_ready, self.holder_stays, self.has_room = True, False, True
        self.moves: list[tuple[str, str]] = []
        self._size, self._is_whole = 0, False

    @property
    def port(self) -> PeersPort:
        return PeersPort(self.state_of, self.purge, self.empty, self.transfer, self.say)

    async def say(self, address: str, text: str, timeout_s: float) -> bool | Failure:
        self.said.append((address, text))
        return SILENT if address in self.silent else True

    async def transfer(
        self, source: str, target: str, used_since_s: float | None, carried: Callable[[int], None]
    ) -> Transferred | Failure:
        self.transfers.append((source, target))
        if {source, target} & self.silent:
            return SILENT
        if used_since_s is not None:
            return Transferred(100, 90, is_part=True)
        carried(1000)
        return Transferred(1000, self.lacking.pop(0) if self.lacking else 0)

    def change(self, size: int, **spec: Any) -> None:
        self._size = size
        moves = {"handover": {"periodSeconds": FOR_S, "moves": {}}, "rollout": {"minReadySeconds": 0}}
        self.size(size, **moves | {"disruptionBudget": None} | spec)

    @property
    def holder(self) -> Json | None:
        return self.world.api.objects.get(("StatefulSet", NAMESPACE, HOLDER))

    @property
    def template(self) -> dict[str, str]:
        found: dict[str, str] = stateful_set(self.world)["spec"]["template"]["metadata"]["annotations"]
        return found

    @property
    def move(self) -> Json | None:
        found: Json | None = self.world.status.get("handover", {}).get("move")
        return found

    @property
    def place(self) -> tuple[str, str] | None:
        """The server that moves, and its step."""
        return (self.move["server"], self.move["step"]) if self.move is not None else None

    def notes(self, reason: str) -> list[str]:
        return [each.note for each in self.world.recorder.events if each.reason == reason]

    def control(self) -> None:
        objects = self.world.api.objects
        for key in [key for key in objects if key[0] == "Pod" and objects[key]["metadata"].get("deletionTimestamp")]:
            if not self._waits(objects[key]):
                del objects[key]
        if self.holder is not None and "deletionTimestamp" in self.holder["metadata"] and not self.holder_stays:
            del objects["StatefulSet", NAMESPACE, HOLDER]
        holder = self.holder
        if holder is not None and ("Pod", NAMESPACE, HELD) not in objects:
            made = live_pod()
            made["metadata"]["ownerReferences"][0] |= {"kind": "StatefulSet", "name": HOLDER}
            template = holder["spec"]["template"]
            made["metadata"] |= {
                "name": HELD,
                "uid": f"uid-{self.world.api.version}-holder",
                "annotations": dict(template["metadata"]["annotations"]),
                "labels": template["metadata"]["labels"] | {"statefulset.kubernetes.io/pod-name": HELD},
            }
            (condition,) = made["status"]["conditions"]
            condition |= {"status": str(self.holder_ready), "lastTransitionTime": rfc3339(self.world)}
            self.world.api.put(made)
        if holder is None:
            objects.pop(("Pod", NAMESPACE, HELD), None)
        kept = objects.pop(("Pod", NAMESPACE, HELD), None)
        was_whole, self._is_whole = self._is_whole, len([*self.pods()]) == self._size
        there = {each["metadata"]["uid"] for each in self.pods()}
        if self._is_whole or not was_whole:  # a pod that is gone is made later
            super().control()
        for each in [*self.pods()]:
            if holder is not None and not self.has_room and each["metadata"]["uid"] not in there:
                del objects["Pod", NAMESPACE, each["metadata"]["name"]]
        if kept is not None:
            if kept["metadata"]["uid"] not in self._addresses:
                self._addresses[kept["metadata"]["uid"]] = f"10.2.0.{len(self._addresses)}"
            kept["status"]["podIP"] = self._addresses[kept["metadata"]["uid"]]
            self.world.api.put(kept)

    def end(self, ordinal: int, grace_s: int = 300) -> str:
        """Delete a server's pod, as others do; its uid."""
        found = pod(self.world, ordinal)
        times = {"deletionTimestamp": rfc3339(self.world, in_s=grace_s), "deletionGracePeriodSeconds": grace_s}
        found["metadata"] |= times
        self.world.api.put(found)
        return str(found["metadata"]["uid"])

    def _waits(self, found: Json) -> bool:
        """Whether the hook of a pod that others deleted goes on."""
        if "deletionGracePeriodSeconds" not in found["metadata"]:
            return False
        is_over = found["metadata"]["deletionTimestamp"] <= rfc3339(self.world)
        return not is_over and (found["status"]["podIP"], DONE) not in self.said

    async def replaced(self, uid: str, reconciles: int = 400) -> None:
        """Reconcile until that pod is gone, and nothing is under way."""
        await self.reach(lambda: uid not in self.uids() and self.move is None, reconciles, 0.3)

    @property
    def budget(self) -> int:
        found = self.world.api.objects["PodDisruptionBudget", NAMESPACE, NAME]
        return int(found["spec"]["maxUnavailable"])

    @property
    def held_address(self) -> str:
        return str(self.world.api.objects["Pod", NAMESPACE, HELD]["status"]["podIP"])

    def moves_counted(self) -> dict[str, float]:
        families = [*self.world.reconciler.families()]
        (family,) = [each for each in families if each.name == "memcached_operator_moves"]
        return {each.labels["result"]: each.value for each in family.samples}

    def peers_text(self) -> list[str]:
        return [each["metadata"]["annotations"].get(PEERS_ANNOTATION, "") for each in self.pods()]

    async def reconcile(self, after_s: float) -> None:
        await super().reconcile(after_s)
        if self.place is not None and self.moves[-1:] != [self.place]:
            self.moves.append(self.place)

    async def reach(self, is_reached: Callable[[], bool], reconciles: int, each_s: float = 0.5) -> None:
        """Reconcile until it is so."""
        for _ in range(reconciles):
            await self.control_and_reconcile(each_s)
            if is_reached():
                return
        raise AssertionError(f"{self.moves}: {self.world.status}; {self.template}")

    async def at(self, server: str, step: str) -> None:
        """Reconcile until a server's move is at a step."""
        await self.reach(lambda: self.place == (server, step), 300, 0.3)

    async def done(self, reconciles: int = 400) -> None:
        """Reconcile until all servers run the template."""
        memcached = self.world.api.objects["Memcached", NAMESPACE, NAME]

        def is_done() -> bool:
            is_observed = self.world.status.get("observedGeneration") == memcached["metadata"]["generation"]
            return is_observed and self.move is None and self.world.condition("Progressing") == ("False", "Complete")

        await self.reach(is_done, reconciles)


async def begun(size: int = 3, **spec: Any) -> MovingServers:
    servers = MovingServers()
    servers.change(size, **spec)
    await servers.until("Complete")
    servers.world.clock.advance(3600)
    await servers.control_and_reconcile()
    servers.calls.clear()
    servers.world.recorder.events.clear()
    return servers


async def moving(step: str) -> MovingServers:
    """Two servers of a rolling change, the first of which is at that step of its move."""
    servers = await begun(2)
    servers.change(2, maxConnections=2048)
    await servers.at(f"{NAME}-1", step)
    return servers


async def test_servers_of_a_rolling_change_move_one_at_a_time_with_their_items() -> None:
    servers = await begun()
    former = servers.uids()
    servers.change(3, maxConnections=2048)
    await servers.done()
    expected = [(f"{NAME}-{ordinal}", step) for ordinal in (2, 1, 0) for step in STEPS]
    assert servers.moves == expected
    assert not former & servers.uids()
    assert servers.holder is None
    assert not {HOLDER_ANNOTATION, PEERS_ANNOTATION} & {*servers.template}
    assert servers.are_disconnected()
    assert [each for each in reasons(servers.world) if "Mov" in each] == ["Moved"] * 3
    assert servers.moves_counted() == {"moved": 3, "not_moved": 0}
    assert "with 1,000 items in " in servers.notes("Moved")[0]


async def test_what_keeps_items_is_there_before_it_is_needed_and_goes_after() -> None:
    servers = await begun(2)
    servers.change(2, maxConnections=2048)
    evicted: list[str] = []
    for _ in range(300):
        before = servers.peers_text()
        await servers.control_and_reconcile(0.3)
        if EVICT in servers.world.api.verbs():
            evicted += [text for text in before if "closed" in text]
            assert servers.holder is not None
            assert servers.template[PEERS_ANNOTATION] == f"1\n{servers.held_address} 11210"
        if any("closed" in text for text in servers.peers_text()):
            assert HOLDER_ANNOTATION in servers.template
            assert servers.budget == 1
        elif servers.move is not None and servers.move["step"] == "Restoring":
            assert servers.budget == 0
        if HOLDER_ANNOTATION in servers.template:
            assert servers.holder is not None
    assert len(evicted) == 2
    assert (servers.holder, servers.budget, servers.move) == (None, 1, None)


@pytest.mark.parametrize("step", STEPS)
async def test_another_leader_goes_on_where_one_ended(step: str) -> None:
    servers = await begun(2)
    servers.lacking = [900, 150, 3]
    servers.change(2, maxConnections=2048)
    await servers.at(f"{NAME}-1", step)
    servers.lead_anew()
    await servers.done()
    assert [each for each in servers.moves if each[0] == f"{NAME}-0"] == [(f"{NAME}-0", each) for each in STEPS]
    assert "NotMoved" not in reasons(servers.world)
    assert servers.holder is None
    assert HOLDER_ANNOTATION not in servers.template
    assert servers.are_disconnected()


async def test_a_holder_that_does_not_get_ready_has_the_server_replaced_as_ever_and_an_event_says_so() -> None:
    servers = await begun(2)
    servers.holder_ready = False
    servers.change(2, maxConnections=2048)
    for ordinal in (1, 0):
        await servers.at(f"{NAME}-{ordinal}", "Preparing")
        for _ in range(3):
            await servers.control_and_reconcile(0.5)
        servers.world.clock.advance(HOLDER_WITHIN_S)
    await servers.done()
    assert servers.notes("NotMoved")[0] == f"The items of {NAME}-1 do not move, as its holder did not get ready in time"
    assert not servers.transfers
    assert servers.holder is None


@pytest.mark.parametrize("step", ["Copying", "Closing", "Restoring"])
async def test_a_holder_that_fails_is_made_unknown_to_new_servers_before_the_server_forgets_it(step: str) -> None:
    servers = await begun(2)
    servers.lacking = [*range(3000, 300, -1)]
    servers.change(2, maxConnections=2048)
    await servers.at(f"{NAME}-1", step)
    servers.silent = {servers.held_address}
    is_known = True
    for _ in range(60):
        texts = servers.peers_text()
        await servers.control_and_reconcile(0.5)
        if is_known and not any("11210" in text for text in texts):
            assert HOLDER_ANNOTATION not in servers.template or servers.holder is None
            is_known = False
        if servers.holder is None:
            break
    assert "NotMoved" in reasons(servers.world)
    servers.silent.clear()
    servers.lacking.clear()
    await servers.done()


async def test_a_server_that_does_not_confirm_keeps_nothing_from_being_replaced() -> None:
    servers = await moving("Preparing")
    servers.silent = {pod(servers.world, 1)["status"]["podIP"]}
    await servers.done()
    expected = f"The items of {NAME}-1 do not move, as it did not confirm its peers in time"
    assert expected in [each.note for each in servers.world.recorder.events]


async def test_a_holder_that_has_the_room_of_the_new_server_goes() -> None:
    servers = await begun(2)
    servers.has_room = False
    servers.change(2, maxConnections=2048)
    await servers.done()
    assert (
        servers.notes("NotMoved")[0]
        == f"The items of {NAME}-1 do not move, as the new server did not start beside its holder"
    )
    assert servers.holder is None


async def test_a_holder_that_does_not_end_keeps_no_server_from_being_replaced() -> None:
    servers = await begun(2)
    servers.holder_stays = True
    servers.change(2, maxConnections=2048)
    former = pod(servers.world, 0)["metadata"]["uid"]
    await servers.reach(lambda: former not in servers.uids(), 400)
    assert servers.notes("NotMoved") == [
        f"The items of {NAME}-0 do not move, as the holder of another server does not end"
    ]
    await servers.done()
    assert (servers.budget, servers.holder is None) == (1, False)
    servers.change(3, maxConnections=2048)
    await servers.until("Published")
    servers.holder_stays = False
    await servers.done()


@pytest.mark.parametrize("step", ["Connecting", "Restoring"])
async def test_a_holder_that_the_status_does_not_have_goes_without_the_field(step: str) -> None:
    servers = await moving(step)
    memcached = servers.world.api.objects["Memcached", NAMESPACE, NAME]
    del memcached["status"]["handover"]["move"]
    servers.change(2, maxConnections=2048, handover={"periodSeconds": FOR_S})
    await servers.done()
    assert servers.holder is None
    assert HOLDER_ANNOTATION not in servers.template
    assert not any("11210" in text for text in servers.peers_text())


async def test_a_size_that_changes_meanwhile_waits_for_the_move() -> None:
    servers = await moving("Copying")
    servers.change(3, maxConnections=2048)
    listed = []
    for _ in range(200):
        await servers.control_and_reconcile(0.5)
        if servers.move is not None:
            listed.append(servers.listed)
        if servers.listed == 3:
            break
    assert {*listed} == {2}
    assert servers.listed == 3


@pytest.mark.parametrize("size", [1, 0])
@pytest.mark.parametrize("step", ["Copying", "Closing"])
async def test_a_server_that_is_desired_no_more_does_not_move(step: str, size: int) -> None:
    servers = await moving(step)
    servers.change(size, maxConnections=2048)
    await servers.reach(lambda: servers.holder is None, 40)
    assert servers.holder is None
    await servers.done()
    assert servers.listed == servers.count() == size


@pytest.mark.parametrize("step", STEPS)
async def test_a_workload_that_changes_meanwhile_leaves_no_holder(step: str) -> None:
    servers = await moving(step)
    servers.change(2, maxConnections=2048, workload="Deployment", handover=None)
    await servers.pass_time(60, 0.5)
    assert (servers.holder, servers.move) == (None, None)
    assert HOLDER_ANNOTATION not in servers.template
    assert not any("11210" in text for text in servers.peers_text())


async def test_clients_of_a_former_list_are_waited_for() -> None:
    servers = MovingServers()
    servers.change(2)
    await servers.until("Complete")
    servers.change(2, maxConnections=2048)
    await servers.pass_time(5, 1.0)
    assert servers.holder is None
    assert "clients may have the former list" in servers.world.message("Progressing")
    servers.world.clock.advance(FOR_S)
    await servers.done()
    assert reasons(servers.world).count("Moved") == 2


async def test_a_rollout_that_is_paused_meanwhile_leaves_no_holder_and_moves_later() -> None:
    servers = await moving("Copying")
    servers.change(2, maxConnections=2048, rollout={"paused": True, "minReadySeconds": 0})
    await servers.pass_time(30, 0.5)
    assert servers.holder is None
    assert servers.world.condition("Progressing") == ("False", "RolloutPaused")
    servers.change(2, maxConnections=2048)
    await servers.done()
    assert reasons(servers.world).count("Moved") == 2


async def test_who_may_not_change_pods_has_servers_replaced_as_ever() -> None:
    servers = await begun(2)
    servers.world.api.refuse("merge_patch", "Pod", *[Forbidden(403, "Forbidden", NO_RIGHT)] * 999)
    servers.change(2, maxConnections=2048)
    await servers.done(600)
    assert servers.holder is None
    assert reasons(servers.world).count("NotMoved") == 2
    assert servers.moves_counted() == {"moved": 0, "not_moved": 2}


async def test_a_holder_that_the_api_server_refuses_is_not_tried_without_a_pause() -> None:
    servers = await begun(2)
    servers.world.api.refuse("create", "StatefulSet", *[Forbidden(403, "Forbidden", "exceeded quota")] * 999)
    servers.change(2, maxConnections=2048)
    await servers.at(f"{NAME}-1", "Preparing")
    tried = 0
    for _ in range(60):
        await servers.control_and_reconcile(0.5)
        tried += servers.world.api.verbs().count("create StatefulSet")
    assert 0 < tried <= 4
    servers.world.clock.advance(HOLDER_WITHIN_S)
    await servers.control_and_reconcile()
    assert "NotMoved" in reasons(servers.world)


async def test_a_server_that_is_replaced_for_memory_that_its_node_lacks_is_tried_once() -> None:
    servers = await begun(1)
    former = pod(servers.world, 0)["metadata"]["uid"]
    servers.holder_ready = False
    servers.change(1, memory="128Mi")
    await servers.control_and_reconcile(0.5)
    for each in servers.pods():
        resize(servers.world, each, type="PodResizePending", reason="Infeasible", message="no room")
    await servers.reach(lambda: former not in servers.uids(), 300)
    assert reasons(servers.world).count("NotMoved") == 1
    assert former not in servers.uids()


async def test_no_server_forgets_the_holder_before_the_controller_makes_new_ones_without_it() -> None:
    servers = await begun(1)
    servers.change(1, maxConnections=2048)
    await servers.at(f"{NAME}-0", "Restoring")
    for _ in range(20):
        servers.world.show()
        await servers.reconcile(0.5)
        assert HOLDER_ANNOTATION not in servers.template or servers.holder is not None
    assert HOLDER_ANNOTATION not in servers.template
    assert f"1\n{servers.held_address} 11210" in servers.peers_text()
    await servers.done()
    assert servers.holder is None


async def test_a_holder_that_another_changed_meanwhile_goes_and_is_told_of_once() -> None:
    servers = await begun(2)
    servers.world.api.refuse("delete", "StatefulSet", Conflict(409, "Conflict", "the object has been modified"))
    servers.change(2, maxConnections=2048)
    await servers.done()
    assert reasons(servers.world).count("Moved") == 2


async def test_a_holder_that_may_not_be_deleted_is_reported_and_all_else_goes_on() -> None:
    servers = await begun(2)
    refusal = Forbidden(403, "Forbidden", 'admission webhook "keep" denied the request')
    servers.world.api.refuse("delete", "StatefulSet", *[refusal] * 999)
    servers.change(2, maxConnections=2048)
    await servers.at(f"{NAME}-1", "Disconnecting")
    tried = 0
    for _ in range(60):
        await servers.control_and_reconcile(0.5)
        tried += servers.world.api.verbs().count("delete StatefulSet")
    assert 0 < tried <= 4
    assert servers.world.condition("Degraded") == ("True", "DeniedByPolicy")
    assert servers.world.message("Degraded").startswith(f"The StatefulSet {HOLDER} cannot be deleted: admission")
    servers.world.api.refusals_of.clear()
    await servers.done()
    assert servers.holder is None


@pytest.mark.parametrize(("copying", "step"), [("Copying", "Replacing"), ("Replacing", "Disconnecting")])
async def test_items_that_could_not_be_copied_are_counted(copying: str, step: str) -> None:
    servers = await moving(copying)
    servers.lacking = [*range(2000, 1000, -1)] if copying == "Copying" else [1500] * 9
    await servers.at(f"{NAME}-1", step)
    servers.lacking.clear()
    await servers.done()
    moved = servers.notes("Moved")[0]
    assert "with 1,000 items but for 1," in moved


async def test_a_server_that_may_not_be_evicted_takes_writes_again() -> None:
    servers = await begun(2)
    servers.world.api.refuse("create/eviction", "Pod", *[TooManyRequests(429, "TooManyRequests", "a budget")] * 999)
    servers.change(2, maxConnections=2048)
    await servers.at(f"{NAME}-1", "Closing")
    await servers.reach(lambda: servers.holder is None, 100)
    assert not any("closed" in text for text in servers.peers_text())
    assert "NotMoved" in reasons(servers.world)


async def test_while_the_specification_cannot_be_read_the_server_takes_writes() -> None:
    servers = await moving("Closing")
    servers.change(2, maxConnections=1)
    await servers.pass_time(4, 0.5)
    assert not any("closed" in text for text in servers.peers_text())
    servers.change(2, maxConnections=2048)
    await servers.done()


@pytest.mark.parametrize("step", STEPS)
async def test_while_the_specification_cannot_be_read_a_move_comes_to_an_end(step: str) -> None:
    servers = await moving(step)
    servers.change(2, maxConnections=1)
    servers.world.api.objects.pop(("Pod", NAMESPACE, HELD), None)
    await servers.pass_time(400, 0.5)
    assert servers.holder is None
    assert HOLDER_ANNOTATION not in servers.template
    assert not any("11210" in text for text in servers.peers_text())


async def test_a_server_that_took_the_place_of_a_restored_one_has_nothing_yet() -> None:
    servers = await begun(2)
    servers.end(1)
    await servers.at(f"{NAME}-1", "Restoring")
    busy = TooManyRequests(429, "TooManyRequests", "busy")
    servers.world.api.refuse("strategic_merge_patch", "StatefulSet", busy)
    with pytest.raises(TooManyRequests):
        await servers.done()  # before new servers are made without the holder
    assert HOLDER_ANNOTATION in servers.template
    servers.world.api.objects.pop(("Pod", NAMESPACE, f"{NAME}-1"))
    servers.transfers.clear()
    await servers.done()
    successor = pod(servers.world, 1)["status"]["podIP"]
    assert successor in {target for _, target in servers.transfers}


async def test_pods_of_a_namespace_that_is_deleted_wait_for_no_holder() -> None:
    servers = await begun(3)
    ended = Forbidden(403, "Forbidden", "it ends", causes=(StatusCause(reason="NamespaceTerminating"),))
    servers.world.api.refuse("create", "StatefulSet", *[ended] * 3)
    uids = {servers.end(ordinal) for ordinal in range(3)}
    await servers.pass_time(12, 0.3)
    assert not uids & servers.uids()


async def test_a_pod_whose_turn_never_came_ends_with_an_event() -> None:
    servers = await begun(3)
    servers.lacking = [*range(9000, 300, -1)]
    servers.end(2)
    await servers.at(f"{NAME}-2", "Copying")
    uid = servers.end(0, 30)
    await servers.reach(lambda: uid not in servers.uids(), 200, 0.3)
    notes = servers.notes("NotMoved")
    assert any(f"{NAME}-0" in note for note in notes)


async def test_a_server_that_others_delete_keeps_its_items_by_the_same_steps() -> None:
    servers = await begun(3)
    servers.lacking = [900, 150, 3]
    address = pod(servers.world, 1)["status"]["podIP"]
    await servers.replaced(servers.end(1))
    assert servers.moves == [(f"{NAME}-1", step) for step in STEPS]
    assert [each for each in reasons(servers.world) if "Mov" in each] == ["Moved"]
    assert servers.moves_counted() == {"moved": 1, "not_moved": 0}
    assert (servers.holder, servers.budget) == (None, 1)
    assert not {HOLDER_ANNOTATION, PEERS_ANNOTATION} & {*servers.template}
    texts = [text for at, text in servers.said if at == address]
    held = next(text for text in texts if "closed" in text)
    assert texts.index(held) < texts.index(DONE)
    assert servers.transfers.count((address, servers.transfers[0][1])) > 2
    assert {at for at, text in servers.said if text == DONE} == {address}


@pytest.mark.parametrize("step", STEPS)
async def test_another_leader_goes_on_with_a_pod_that_waits(step: str) -> None:
    servers = await begun(2)
    uid = servers.end(1)
    await servers.at(f"{NAME}-1", step)
    servers.lead_anew()
    await servers.replaced(uid)
    assert servers.notes("NotMoved") == []
    assert servers.holder is None
    assert HOLDER_ANNOTATION not in servers.template


async def test_servers_that_are_deleted_together_move_one_after_the_other() -> None:
    servers = await begun(3)
    uids = [servers.end(ordinal) for ordinal in (0, 2)]
    for uid in uids:
        await servers.replaced(uid)
    assert sorted({name for name, _ in servers.moves}) == [f"{NAME}-0", f"{NAME}-2"]
    assert reasons(servers.world).count("Moved") == 2


async def test_a_server_of_a_rolling_change_that_others_delete_goes_on() -> None:
    servers = await moving("Copying")
    servers.end(1)
    await servers.done()
    assert reasons(servers.world).count("Moved") == 2


@pytest.mark.parametrize("step", STEPS[:4])
async def test_a_server_that_is_deleted_goes_before_another_of_a_rolling_change(step: str) -> None:
    servers = await moving(step)
    servers.end(0)
    await servers.done()
    assert [each for each in servers.moves if each[1] == "Restoring"] == [
        (f"{NAME}-{each}", "Restoring") for each in (0, 1)
    ]
    assert reasons(servers.world).count("Moved") == 2


async def test_a_pod_that_is_on_a_lost_node_is_not_waited_for() -> None:
    servers = await begun(2)
    servers.silent = {pod(servers.world, 1)["status"]["podIP"]}
    servers.end(1, 20)
    servers.world.clock.advance(21)
    servers.world.show()
    await servers.reconcile(0.3)
    assert servers.move is None
    assert servers.said == []


@pytest.mark.parametrize("lacking", [[3**power for power in range(200, 6, -1)], []])
async def test_a_pod_whose_time_is_over_ends_with_what_was_copied(lacking: list[int]) -> None:
    servers = await begun(2)
    servers.lacking = lacking
    uid = servers.end(1, 30)
    for _ in range(400):
        await servers.control_and_reconcile(0.3)
        if servers.move is not None and servers.move["step"] == "Replacing":
            servers.lacking = []
        if uid not in servers.uids() and servers.move is None:
            break
    moved = servers.notes("Moved")[0]
    assert ("but for those that there was no time for" in moved) == bool(lacking)


async def test_a_server_whose_holder_fails_ends_after_new_ones_are_made_without_it() -> None:
    servers = await begun(2)
    servers.lacking = [*range(9000, 300, -1)]
    uid, address = servers.end(1), pod(servers.world, 1)["status"]["podIP"]
    await servers.at(f"{NAME}-1", "Copying")
    servers.silent = {servers.held_address}
    await servers.reach(lambda: (address, DONE) in servers.said, 60)
    assert HOLDER_ANNOTATION not in servers.template
    await servers.replaced(uid)
    assert "NotMoved" in reasons(servers.world)


async def test_pods_that_leave_for_good_end_at_once_and_nothing_says_so() -> None:
    servers = await begun(3)
    servers.change(2)
    await servers.until("Published")
    address = pod(servers.world, 2)["status"]["podIP"]
    servers.end(2)
    servers.world.show()
    await servers.reconcile(0.3)
    assert servers.said == [(address, DONE)]
    assert "NotMoved" not in reasons(servers.world)


@pytest.mark.parametrize("change", ["moves", "handover", "invalid"])
async def test_pods_wait_for_no_move_that_is_not_desired(change: str) -> None:
    servers = await begun(2)
    specs: dict[str, dict[str, Any]] = {
        "moves": {"handover": {"periodSeconds": FOR_S}},
        "handover": {"handover": None},
        "invalid": {"maxConnections": 1},
    }
    servers.change(2, rollout={"paused": True}, **specs[change])
    await servers.control_and_reconcile()
    servers.said.clear()
    address = pod(servers.world, 1)["status"]["podIP"]
    servers.end(1)
    servers.world.show()
    await servers.reconcile(0.3)
    assert servers.said == [(address, DONE)]


async def test_pods_of_a_memcached_that_is_deleted_end_at_once() -> None:
    servers = await begun(2)
    address = pod(servers.world, 1)["status"]["podIP"]
    servers.end(1)
    del servers.world.api.objects["Memcached", NAMESPACE, NAME]
    servers.world.show()
    await servers.world.reconcile(after_s=0.3)
    assert servers.said == [(address, DONE)]


async def test_a_pod_that_did_not_hear_that_it_may_end_is_told_again() -> None:
    servers = await begun(2)
    servers.change(2, handover={"periodSeconds": FOR_S}, rollout={"paused": True})
    await servers.control_and_reconcile()
    servers.silent = {pod(servers.world, 1)["status"]["podIP"]}
    servers.end(1)
    servers.world.show()
    await servers.reconcile(0.3)
    assert servers.requeue_s is not None
    assert servers.requeue_s <= 1.0
    del servers.world.api.objects["Memcached", NAMESPACE, NAME]
    servers.world.show()
    assert (await servers.world.reconcile(after_s=0.3)).requeue_after_s == 1.0


async def test_progress_is_told_in_steps_of_ten() -> None:
    servers = await begun(2)
    servers.lacking = [*range(9000, 300, -1)]
    servers.end(1, 300)
    await servers.at(f"{NAME}-1", "Preparing")
    assert "Its pod ends in 290 s at the latest." in servers.world.message("Progressing")
