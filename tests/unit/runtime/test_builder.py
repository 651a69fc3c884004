"""Which changes wake whom, with kinds that nobody has ever heard of."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memcached_operator.runtime.cache.own_writes import OwnWrites
from memcached_operator.runtime.cache.store import ObjectKey, Store
from memcached_operator.runtime.channel import Channel
from memcached_operator.runtime.controller import Controller, Result
from memcached_operator.runtime.kinds import Kind, PlainObject, plain
from memcached_operator.runtime.operator import Operator
from memcached_operator.runtime.predicates import generation_changed
from memcached_operator.runtime.program.identity import Program
from memcached_operator.runtime.workqueue.queue import LOW_PRIORITY
from tests.unit.kube.client_support import client_of
from tests.unit.runtime.operator_support import config

SHELLS = plain("example.org/v1", "Shell", "shells")
CLUSTER_SHELLS = plain("example.org/v1", "ClusterShell", "clustershells", namespaced=False)
DEPLOYMENTS = plain("apps/v1", "Deployment", "deployments")
NODES = plain("v1", "Node", "nodes", namespaced=False)
A, B = ObjectKey("shop", "a"), ObjectKey("shop", "b")


async def reconcile(key: ObjectKey) -> Result:
    return Result()


def operator_of(*namespaces: str) -> Operator:
    return Operator(config(), Program("shells", "1"), client_of("https://api.invalid"), namespaces=namespaces)


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


def woken(controller: Controller[ObjectKey]) -> set[ObjectKey]:
    keys = set()
    while (key := controller.queue.core.get_nowait()) is not None:
        controller.queue.done(key)
        keys.add(key)
    return keys


def test_an_object_wakes_itself_when_it_comes_when_it_changes_and_when_it_goes(operator: Operator) -> None:
    operator.controller("shell", SHELLS, reconcile)
    shells, controller = operator.informer(SHELLS), begun(operator)
    shells.put(some(SHELLS, "a"))
    assert woken(controller) == {A}
    shells.put(some(SHELLS, "a", 2, labels={"new": "yes"}))
    assert woken(controller) == {A}
    shells.remove(A)
    assert woken(controller) == {A}


def test_a_version_that_differs_in_nothing_wakes_nobody(operator: Operator) -> None:
    operator.controller("shell", SHELLS, reconcile)
    shells, controller = operator.informer(SHELLS), begun(operator)
    shells.put(some(SHELLS, "a"))
    woken(controller)
    shells.put(some(SHELLS, "a", 2))
    assert woken(controller) == set()


def test_what_a_predicate_does_not_count_wakes_nobody_unless_the_key_waits_for_its_own_write(
    operator: Operator,
) -> None:
    own = OwnWrites()
    operator.controller("shell", SHELLS, reconcile, when=generation_changed, own_writes=own)
    shells, controller = operator.informer(SHELLS), begun(operator)
    shells.put(some(SHELLS, "a"))
    woken(controller)
    shells.put(some(SHELLS, "a", 2, labels={"new": "yes"}))
    assert woken(controller) == set()
    own.expect(A, SHELLS.resource.qualified_name, "uid-a", "3")
    shells.put(some(SHELLS, "a", 3, labels={"new": "no"}))
    assert woken(controller) == {A}
    assert not own.pending(A), "and its write has arrived"


def test_an_owned_object_wakes_its_controller_also_one_that_is_gone(operator: Operator) -> None:
    operator.controller("shell", SHELLS, reconcile).owns(DEPLOYMENTS)
    deployments, controller = operator.informer(DEPLOYMENTS), begun(operator)
    deployments.put(some(DEPLOYMENTS, "web", **owned_by("a")))
    assert woken(controller) == {A}
    deployments.put(some(DEPLOYMENTS, "web", 2, **owned_by("b")))
    assert woken(controller) == {A, B}, "the old owner and the new one"


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        owned_by("a", controller=False),
        owned_by("a", DEPLOYMENTS),
        owned_by("a", plain("other.example.org/v1", "Shell", "shells")),
    ],
    ids=["nobody's", "not controlled", "of another kind", "of another group"],
)
def test_an_object_that_is_not_controlled_by_the_kind_wakes_nobody(
    operator: Operator, metadata: dict[str, Any]
) -> None:
    operator.controller("shell", SHELLS, reconcile).owns(DEPLOYMENTS)
    deployments, controller = operator.informer(DEPLOYMENTS), begun(operator)
    deployments.put(some(DEPLOYMENTS, "web", **metadata))
    assert woken(controller) == set()


def test_an_owner_without_a_namespace_is_found_from_any_namespace(operator: Operator) -> None:
    operator.controller("shell", CLUSTER_SHELLS, reconcile).owns(DEPLOYMENTS)
    deployments, controller = operator.informer(DEPLOYMENTS), begun(operator)
    deployments.put(some(DEPLOYMENTS, "web", **owned_by("a", CLUSTER_SHELLS)))
    assert woken(controller) == {ObjectKey("", "a")}


def test_a_mapping_function_may_find_several_keys_or_none(operator: Operator) -> None:
    def by_label(node: PlainObject) -> list[ObjectKey]:
        return [ObjectKey("shop", name) for name in node.labels.values()]

    operator.controller("shell", SHELLS, reconcile).watches(NODES, by_label)
    nodes, controller = operator.informer(NODES), begun(operator)
    nodes.put(some(NODES, "one", labels={"first": "a", "second": "b"}))
    assert woken(controller) == {A, B}
    nodes.put(some(NODES, "two"))
    assert woken(controller) == set()


@pytest.mark.parametrize("given", ["shop/a", ("shop", "a"), [("shop", "a")], 7])
def test_a_key_of_a_wrong_type_is_told_with_the_controller_and_the_remedy(operator: Operator, given: Any) -> None:
    operator.controller("shell", SHELLS, reconcile).watches(NODES, lambda node: given)
    nodes = operator.informer(NODES)
    begun(operator)
    with pytest.raises(TypeError, match=r"^controller 'shell' was given .* as a key for Node: give ObjectKey\("):
        nodes.put(some(NODES, "one"))


async def test_a_channel_wakes_whom_its_events_concern(operator: Operator) -> None:
    channel: Channel[str] = Channel()
    operator.controller("shell", SHELLS, reconcile).listens(channel, lambda name: ObjectKey("shop", name))
    controller = begun(operator)
    channel.send("b")
    assert woken(controller) == {B}


def test_when_it_begins_it_looks_at_everything_that_is_there_and_at_whom_that_concerns(operator: Operator) -> None:
    operator.controller("shell", SHELLS, reconcile).owns(DEPLOYMENTS)
    operator.informer(SHELLS).put(some(SHELLS, "a"))
    operator.informer(DEPLOYMENTS).put(some(DEPLOYMENTS, "web", **owned_by("b")))
    controller = begun(operator)
    assert controller.queue.core.depth() == {LOW_PRIORITY: 2}
    assert woken(controller) == {A, B}


def test_two_controllers_share_one_cache_of_a_kind_and_a_selection(operator: Operator) -> None:
    operator.controller("shell", SHELLS, reconcile).owns(DEPLOYMENTS).watches(NODES, lambda node: None, labels="a=b")
    operator.controller("node", NODES, reconcile).watches(DEPLOYMENTS, lambda deployment: None)
    assert [each.resource.plural for each in operator.finish().reflectors] == [
        "shells",
        "deployments",
        "nodes",
        "nodes",
    ]
    assert operator.informer(NODES) is operator.informer(NODES)
    assert operator.informer(NODES) is not operator.informer(NODES, labels="a=b")


def test_each_namespace_has_its_watch_and_a_kind_without_namespaces_one() -> None:
    operator = operator_of("shop", "bank")
    operator.controller("shell", SHELLS, reconcile).watches(NODES, lambda node: None)
    watched = [(each.resource.plural, each.namespace) for each in operator.finish().reflectors]
    assert watched == [("shells", "shop"), ("shells", "bank"), ("nodes", None)]


def test_two_controllers_of_one_name_are_refused(operator: Operator) -> None:
    operator.controller("shell", SHELLS, reconcile)
    with pytest.raises(ValueError, match="two controllers are named 'shell'"):
        operator.controller("shell", NODES, reconcile)


def test_a_reconciler_that_is_no_coroutine_function_is_refused(operator: Operator) -> None:
    def plain_function(key: ObjectKey) -> Result:
        return Result()

    with pytest.raises(TypeError, match="'shell' is not a coroutine function: write `async def`"):
        operator.controller("shell", SHELLS, plain_function)  # type: ignore[arg-type]


def test_an_index_files_what_was_there_before_it() -> None:
    store: Store[PlainObject] = Store()
    store.put(some(SHELLS, "a", labels={"team": "x"}))
    store.put(some(SHELLS, "b"))
    store.add_index("team", lambda shell: ObjectKey("", shell.labels["team"]) if shell.labels else None)
    store.put(some(SHELLS, "c", labels={"team": "x"}))
    assert sorted(each.name for each in store.by_index("team", ObjectKey("", "x"))) == ["a", "c"]
    with pytest.raises(ValueError, match="there is an index 'team' already"):
        store.add_index("team", lambda shell: None)
