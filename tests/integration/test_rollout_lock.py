"""The pace of a rollout where operators come and go, and where the operator's own default image has changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from operator_runtime.testing.waiting import eventually
from tests.integration.conftest import Operators
from tests.integration.oracle import catch_up
from tests.integration.rolling import FORMER, NEXT, NOW, PAUSE_S, Rolling, rolling, template
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import OperatorProcess


@pytest.fixture
def shop(kubectl: Kubectl) -> Iterator[Rolling]:
    with rolling(kubectl, "shop") as (shop,):
        yield shop


def start(kubectl: Kubectl, operators: Operators, image: str = FORMER) -> OperatorProcess:
    """An operator for the test's namespace alone, which the test may end."""
    return operators.start("-n", kubectl.namespace, RELATED_IMAGE_MEMCACHED=image).ready()


def test_an_operator_that_starts_in_the_middle_of_a_rollout_keeps_its_pace(shop: Rolling, operators: Operators) -> None:
    first = start(shop.kubectl, operators)
    shop.create(3, rollout={"minReadySeconds": PAUSE_S})
    shop.change(image=NEXT)
    assert shop.next() == "shop-2"
    first.kill()
    shop.serve("shop-2", since=NOW)
    start(shop.kubectl, operators)
    shop.await_left(2, 3)
    catch_up(shop.kubectl)
    assert shop.evicted() == ["shop-2"]
    shop.serve("shop-2")
    assert shop.next() == "shop-1"
    shop.serve("shop-1")
    assert shop.next() == "shop-0"
    shop.serve("shop-0")
    shop.await_condition("Ready", "AllServersReady")
    assert shop.evicted() == ["shop-2", "shop-1", "shop-0"]


def test_memcacheds_that_name_no_image_come_to_another_default_one_after_the_other(
    kubectl: Kubectl, operators: Operators
) -> None:
    first = start(kubectl, operators)
    with rolling(kubectl, "a", "b", "c", "named") as all_of_them:
        for each, workload in zip(
            all_of_them, ("StatefulSet", "Deployment", "StatefulSet", "StatefulSet"), strict=True
        ):
            named = {"image": "memcached:1.6.40"} if each.name == "named" else {}
            each.create(1, workload=workload, rollout={"minReadySeconds": 0}, **named)
        *waiting, named_one = all_of_them
        assert first.stop() == 0
        start(kubectl, operators, NEXT)
        for _ in range(len(waiting)):
            turn = next_turn(waiting)
            turn.next()
            waiting.remove(turn)
            # Its new server is not ready yet, and may never be.
            for each in waiting:
                words = "own defaults have changed: the servers are replaced after the servers of other Memcacheds."
                each.await_condition("Progressing", "Complete", words)
                assert image(each) == FORMER
            turn.serve(*turn.pods())
            turn.await_condition("Ready", "AllServersReady")
        assert template(named_one.get("statefulsets"))[0] == "memcached:1.6.40"
        assert sorted(named_one.evicted()) == ["a-0", "c-0"]


def next_turn(waiting: Sequence[Rolling]) -> Rolling:
    """The one of them whose servers are to come to the other image now."""
    (turn,) = eventually(lambda: [each for each in waiting if image(each) == NEXT], bool, what="one's turn")
    return turn


def image(memcached: Rolling) -> str:
    """Which image its servers are made from."""
    return template(memcached.get("deployments" if memcached.name == "b" else "statefulsets"))[0]
