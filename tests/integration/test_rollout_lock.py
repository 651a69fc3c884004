"""The pace of a rollout where operators come and go, and where the operator's own default image has changed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.conftest import Operators
from tests.integration.oracle import catch_up
from tests.integration.rolling import FORMER, NEXT, NOW, PAUSE_S, Rolling, rolling
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
