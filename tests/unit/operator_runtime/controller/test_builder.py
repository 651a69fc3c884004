"""Which changes enqueue which keys, with kinds that nobody has ever heard of."""

from __future__ import annotations

import json
from typing import Any

import pytest

from operator_runtime.cache.store import ObjectKey, Store, key_of
from operator_runtime.controller.channel import Channel
from operator_runtime.controller.controller import Controller, Result
from operator_runtime.controller.predicates import Predicate, always, generation_changed
from operator_runtime.identity import Program
from operator_runtime.objects.api_objects import PlainObject
from operator_runtime.objects.kinds import Kind, plain
from operator_runtime.operator import Operator
from operator_runtime.serving.probes import Checks
from operator_runtime.workqueue.queue import LOW_PRIORITY
from tests.unit.operator_runtime.client.client_support import client_of
from tests.unit.operator_runtime.http import get
from tests.unit.operator_runtime.operator_support import settings

SHELLS = plain("example.org/v1", "Shell", "shells")
CLUSTER_SHELLS = plain("example.org/v1", "ClusterShell", "clustershells", namespaced=False)
DEPLOYMENTS = plain("apps/v1", "Deployment", "deployments")
NODES = plain("v1", "Node", "nodes", namespaced=False)
PROGRAM_OF_SHELLS = Program("shells", "1")
A, B = ObjectKey("shop", "a"), ObjectKey("shop", "b")


async def reconcile(key: ObjectKey) -> Result:
    return Result()


def operator_of(*namespaces: str) -> Operator:
    return Operator(settings(), PROGRAM_OF_SHELLS, client_of("https://api.invalid"), namespaces=namespaces)


@pytest.fixture
def operator() -> Operator:
    return operator_of()


def some(kind: Kind[PlainObject], name: str, version: int = 1, **metadata: Any) -> PlainObject:
    """An object as the API server sends it."""
    placed = {"namespace": "shop"} if kind.resource.namespaced else {}
    full = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version), "generation": 1, **placed, **metadata}
    return kind.decode(json.dumps({"kind": kind.resource.kind, "metadata": full}).encode())


def owned_by(name: str, kind: Kind[PlainObject] = SHELLS, *, controller: bool = True) -> dict[str, Any]:
    owner = {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind, "name": name, "uid": f"uid-{name}"}
    return {"ownerReferences": [owner | {"controller": controller}]}


def begun(operator: Operator) -> Controller[ObjectKey]:
    (controller,) = operator.finish()._runnables
    assert isinstance(controller, Controller)
    controller.begin()
    return controller


def of_shells(
    operator: Operator, when: Predicate[PlainObject] = always
) -> tuple[Store[PlainObject], Controller[ObjectKey]]:
    """A controller of Shells, and their cache."""
    operator.controller("shell", SHELLS, reconcile, when=when)
    return operator.informer(SHELLS), begun(operator)


def in_turn(controller: Controller[ObjectKey]) -> list[ObjectKey]:
    keys = []
    while (key := controller.queue.get_nowait()) is not None:
        controller.queue.done(key)
        keys.append(key)
    return keys


def enqueued(controller: Controller[ObjectKey]) -> set[ObjectKey]:
    return set(in_turn(controller))


def test_an_object_enqueues_itself_when_it_comes_when_it_changes_and_when_it_goes(operator: Operator) -> None:
    shells, controller = of_shells(operator)
    shells.put(some(SHELLS, "a"))
    assert enqueued(controller) == {A}
    shells.put(some(SHELLS, "a", 2))
    assert enqueued(controller) == set(), "it differs in nothing"
    shells.put(some(SHELLS, "a", 3, labels={"new": "yes"}))
    assert enqueued(controller) == {A}
    shells.remove(A)
    assert enqueued(controller) == {A}


@pytest.mark.parametrize("put_off", [True, False])
def test_what_a_predicate_does_not_count_enqueues_nothing_but_a_key_that_was_put_off_for_its_own_write(
    operator: Operator, put_off: bool
) -> None:
    shells, controller = of_shells(operator, generation_changed)
    own = operator._own_writes["shell"]
    shells.put(some(SHELLS, "a"))
    enqueued(controller)
    shells.put(some(SHELLS, "a", 2, labels={"new": "yes"}))
    assert enqueued(controller) == set()
    own.expect(A, SHELLS.resource.qualified_name, A, "uid-a", "3")
    if put_off:
        assert controller.delay_s(A) > 0.0
    shells.put(some(SHELLS, "a", 3, labels={"new": "no"}))
    assert enqueued(controller) == ({A} if put_off else set())
    assert not own.pending(A), "and its write has arrived"
    own.expect_change(A, SHELLS.resource.qualified_name, some(SHELLS, "a", 3, labels={"new": "no"}))
    shells.put(some(SHELLS, "a", 4, labels={"new": "yes"}))
    assert enqueued(controller) == {A}, "it waits for what others do"


@pytest.mark.parametrize("after_create", [True, False])
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("put_off", [True, False])
def test_what_a_reconcile_made_enqueues_its_key_again_unless_it_had_the_answer_and_nothing_is_new(
    operator: Operator, after_create: bool, version: int, put_off: bool
) -> None:
    builder = operator.controller("shell", SHELLS, reconcile)
    builder.watches(DEPLOYMENTS, builder._owner_of, after_create=after_create)
    own = operator._own_writes["shell"]
    deployments, controller = operator.informer(DEPLOYMENTS), begun(operator)
    web = some(DEPLOYMENTS, "web", version, **owned_by("a"))
    own.expect(A, DEPLOYMENTS.resource.qualified_name, key_of(web), "uid-web", "1")
    if put_off:
        assert own.put_off_s(A) > 0.0
    deployments.put(web)
    assert enqueued(controller) == ({A} if after_create or put_off or version == 2 else set())
    deployments.put(some(DEPLOYMENTS, "web", 3, labels={"new": "yes"}, **owned_by("a")))
    assert enqueued(controller) == {A}


def test_an_owned_object_enqueues_its_controller_also_one_that_is_gone(operator: Operator) -> None:
    operator.controller("shell", SHELLS, reconcile).owns(DEPLOYMENTS)
    deployments, controller = operator.informer(DEPLOYMENTS), begun(operator)
    deployments.put(some(DEPLOYMENTS, "web", **owned_by("a")))
    assert enqueued(controller) == {A}
    deployments.put(some(DEPLOYMENTS, "web", 2, **owned_by("b")))
    assert enqueued(controller) == {A, B}, "the old owner and the new one"


@pytest.mark.parametrize(
    ("owner", "metadata", "keys"),
    [
        (SHELLS, {}, set()),
        (SHELLS, owned_by("a", controller=False), set()),
        (SHELLS, owned_by("a", DEPLOYMENTS), set()),
        (SHELLS, owned_by("a", plain("other.example.org/v1", "Shell", "shells")), set()),
        (CLUSTER_SHELLS, owned_by("a", CLUSTER_SHELLS), {ObjectKey("", "a")}),
    ],
    ids=["nobody's", "not controlled", "of another kind", "of another group", "an owner without a namespace"],
)
def test_an_object_enqueues_who_controls_it_if_that_is_of_the_kind(
    operator: Operator, owner: Kind[PlainObject], metadata: dict[str, Any], keys: set[ObjectKey]
) -> None:
    operator.controller("shell", owner, reconcile).owns(DEPLOYMENTS)
    deployments, controller = operator.informer(DEPLOYMENTS), begun(operator)
    deployments.put(some(DEPLOYMENTS, "web", **metadata))
    assert enqueued(controller) == keys


def test_a_mapping_function_may_find_several_keys_or_none(operator: Operator) -> None:
    def by_label(node: PlainObject) -> list[ObjectKey]:
        return [ObjectKey("shop", name) for name in node.labels.values()]

    operator.controller("shell", SHELLS, reconcile).watches(NODES, by_label)
    nodes, controller = operator.informer(NODES), begun(operator)
    nodes.put(some(NODES, "one", labels={"first": "a", "second": "b"}))
    assert enqueued(controller) == {A, B}
    nodes.put(some(NODES, "two"))
    assert enqueued(controller) == set()


@pytest.mark.parametrize("given", ["shop/a", [("shop", "a")], 7])
def test_a_key_of_a_wrong_type_is_told_with_the_controller_and_the_remedy(
    operator: Operator, given: Any, caplog: pytest.LogCaptureFixture
) -> None:
    operator.controller("shell", SHELLS, reconcile).watches(NODES, lambda node: given)
    nodes, controller = operator.informer(NODES), begun(operator)
    nodes.put(some(NODES, "one"))
    (line,) = caplog.messages
    assert "controller 'shell' was given " in line
    assert "as a key for Node: give ObjectKey(namespace, name)" in line
    assert enqueued(controller) == set()


def test_a_mapping_function_that_fails_on_one_object_is_named_once_and_all_others_go_on(
    operator: Operator, caplog: pytest.LogCaptureFixture
) -> None:
    def shell_of(node: PlainObject) -> ObjectKey:
        return ObjectKey("shop", node.labels["shell"])

    operator.controller("shell", SHELLS, reconcile).watches(NODES, shell_of)
    nodes = operator.informer(NODES)
    nodes.put(some(NODES, "bare"))
    controller = begun(operator)
    nodes.put(some(NODES, "good", labels={"shell": "a"}))
    nodes.put(some(NODES, "bare", 2, labels={"other": ""}))
    nodes.remove(ObjectKey("", "bare"))
    assert enqueued(controller) == {A}
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert record.exc_info is not None
    message = record.getMessage()
    assert "shell_of (" in message
    assert message.endswith(" failed for Node bare: KeyError: 'shell'. Controller shell does not reconcile for it.")


def test_a_change_at_which_a_predicate_fails_counts(operator: Operator, caplog: pytest.LogCaptureFixture) -> None:
    def chosen(before: PlainObject | None, after: PlainObject | None) -> bool:
        raise RuntimeError("no such label")

    shells, controller = of_shells(operator, chosen)
    shells.put(some(SHELLS, "a"))
    shells.put(some(SHELLS, "b"))
    assert enqueued(controller) == {A, B}
    (line,) = caplog.messages
    assert "chosen (" in line
    ends = " for a change of Shell shop/a: RuntimeError: no such label. The change is treated as relevant."
    assert line.endswith(ends)


def test_coroutine_functions_are_refused_where_nobody_would_await_them(operator: Operator) -> None:
    async def never(*_: object) -> Any: ...

    builder = operator.controller("shell", SHELLS, reconcile)
    with pytest.raises(TypeError, match=r"^the mapping function of controller 'shell' for Node is a coroutine"):
        builder.watches(NODES, never)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^the predicate of controller 'shell' for Deployment is a coroutine"):
        builder.owns(DEPLOYMENTS, when=never)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^what controller 'shell' begins with is a coroutine"):
        builder.begins_with(operator.informer(SHELLS), never)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^the function of the index 'team' is a coroutine function, .*never"):
        operator.informer(NODES).add_index("team", never)  # type: ignore[arg-type]


def test_an_index_files_what_was_there_before_it_and_leaves_out_what_its_function_fails_at(
    caplog: pytest.LogCaptureFixture,
) -> None:
    team, nodes = ObjectKey("", "x"), Store[PlainObject]()
    nodes.put(some(NODES, "bare"))
    nodes.put(some(NODES, "one", labels={"team": "x"}))
    nodes.add_index("team", lambda node: ObjectKey("", node.labels["team"]))
    nodes.put(some(NODES, "two", labels={"team": "x"}))
    assert sorted(each.name for each in nodes.by_index("team", team)) == ["one", "two"]
    assert nodes.get(ObjectKey("", "bare")) is not None
    nodes.put(some(NODES, "bare", 2, labels={"team": "x"}))
    nodes.put(some(NODES, "one", 2))
    nodes.remove(ObjectKey("", "one"))
    assert sorted(each.name for each in nodes.by_index("team", team)) == ["bare", "two"]
    (line,) = caplog.messages
    assert line.endswith(" failed for the PlainObject bare: KeyError: 'team'. The index 'team' leaves it out.")
    with pytest.raises(ValueError, match="there is an index 'team' already"):
        nodes.add_index("team", lambda node: None)


async def test_a_kind_may_be_watched_in_several_selections_each_with_a_name_of_its_own() -> None:
    several = operator_of("shop", "bank")
    several.controller("shell", SHELLS, reconcile).watches(NODES, lambda node: None)
    watched = [(each.resource.plural, each.namespace) for each in several.finish().reflectors]
    assert watched == [("shells", "shop"), ("shells", "bank"), ("nodes", None)]
    operator = operator_of("shop")
    again = plain("apps/v1", "Deployment", "deployments")
    operator.informer(DEPLOYMENTS)
    operator.controller("shell", SHELLS, reconcile).owns(DEPLOYMENTS, labels="app=a").watches(again, lambda each: None)
    reflectors = operator.finish().reflectors
    assert [each.description for each in reflectors if each.resource.plural == "deployments"] == [
        "deployments.apps in namespace shop",
        "deployments.apps in namespace shop (app=a)",
        "deployments.apps in namespace shop (watch 3)",
    ]
    assert [each.scope for each in reflectors] == ["shop", "shop", "shop.2", "shop.3"]
    checks = Checks()
    for each in reflectors:
        checks.add_watch(each)
    shown = await checks.answer(get("/readyz"))
    lines = shown.body.decode().splitlines()
    assert [line.split()[0] for line in lines if "deployments" in line] == [
        "[-]watch/deployments.apps/shop",
        "[-]watch/deployments.apps/shop.2",
        "[-]watch/deployments.apps/shop.3",
    ]


def test_a_watch_that_is_added_while_the_operator_runs_is_refused(operator: Operator) -> None:
    builder = operator.controller("shell", SHELLS, reconcile)
    begun(operator)
    with pytest.raises(RuntimeError, match=r"^a watch of Node comes too late for controller 'shell': add it in "):
        builder.watches(NODES, lambda node: None)


async def test_a_channel_enqueues_whom_its_events_concern(operator: Operator) -> None:
    channel: Channel[str] = Channel()
    operator.controller("shell", SHELLS, reconcile).watches_channel(channel, lambda name: ObjectKey("shop", name))
    controller = begun(operator)
    channel.send("b")
    assert enqueued(controller) == {B}


def test_when_it_begins_it_reconciles_all_that_concerns_it_and_first_those_for_whom_somebody_waits(
    operator: Operator, caplog: pytest.LogCaptureFixture
) -> None:
    def overdue(shell: PlainObject) -> bool:
        return shell.labels["asked"] == "yes"

    shells = operator.informer(SHELLS)
    operator.controller("shell", SHELLS, reconcile).owns(DEPLOYMENTS).begins_with(shells, overdue)
    for name, restart in (("a", "no"), ("b", "no"), ("c", "yes"), ("d", "no"), ("e", "yes")):
        shells.put(some(SHELLS, name, labels={"asked": restart}))
    shells.put(some(SHELLS, "unasked"))
    operator.informer(DEPLOYMENTS).put(some(DEPLOYMENTS, "web", **owned_by("gone")))
    controller = begun(operator)
    assert controller.queue.depth() == {LOW_PRIORITY: 7}
    assert [key.name for key in in_turn(controller)] == ["c", "e", "a", "b", "d", "unasked", "gone"]
    (message,) = caplog.messages
    assert "overdue (" in message
    assert "failed for Shell shop/unasked: KeyError: 'asked'. It keeps its turn." in message


def test_two_controllers_share_one_cache_of_a_kind_and_a_selection(operator: Operator) -> None:
    operator.controller("shell", SHELLS, reconcile).owns(DEPLOYMENTS).watches(NODES, lambda node: None, labels="a=b")
    operator.controller("node", NODES, reconcile).watches(DEPLOYMENTS, lambda deployment: None)
    kinds = [each.resource.plural for each in operator.finish().reflectors]
    assert kinds == ["shells", "deployments", "nodes", "nodes"]
    assert operator.informer(NODES) is operator.informer(NODES)
    assert operator.informer(NODES) is not operator.informer(NODES, labels="a=b")
