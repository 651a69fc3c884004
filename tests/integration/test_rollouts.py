"""How the servers of a Memcached come to another template: one at a time, at the pace of spec.rollout."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.rolling import FORMER, NEXT, Rolling, rolling
from tests.kubectl_in_namespace import Kubectl

pytestmark = [pytest.mark.core, pytest.mark.usefixtures("operator")]

# Longer than any test: a server that has just become ready then holds the next.
PACE = {"minReadySeconds": 3600}


@pytest.fixture
def shop(kubectl: Kubectl) -> Iterator[Rolling]:
    with rolling(kubectl) as shop:
        yield shop


@pytest.mark.cluster("kubernetes")  # the simulator asks no budgets
@pytest.mark.parametrize(
    ("budgets", "words"),
    [
        (("users",), " yet: Cannot evict pod"),
        (("users", "another"), ": This pod has more than one PodDisruptionBudget"),
    ],
    ids=["that allows none", "beside another"],
)
def test_a_budget_of_the_users_own_holds_it_and_the_status_says_so(
    shop: Rolling, budgets: tuple[str, ...], words: str
) -> None:
    shop.create(2, rollout=PACE)
    selects = ("--selector=memcached_cr=shop", "--max-unavailable=0")
    for name in budgets:
        shop.kubectl("create", "poddisruptionbudget", name, *selects)
        shop.kubectl.wait_field(f"pdb/{name}", ".status.observedGeneration", 1)
    shop.change(image=NEXT)
    shop.await_condition("Ready", "Updating", f"shop-1 cannot be replaced{words}")
    assert shop.evicted() == []
    shop.kubectl("delete", "poddisruptionbudget", *budgets)
    assert shop.next() == "shop-1"


def test_a_deployment_that_was_paused_by_hand_goes_on_and_is_not_taken_for_rolled_out(shop: Rolling) -> None:
    shop.create(2, workload="Deployment", image=FORMER, rollout={"minReadySeconds": 0})
    shop.kubectl("rollout", "pause", "deployment/shop")
    shop.change(image=NEXT)
    new = shop.next()
    shop.await_condition("Progressing", "Updating")
    assert "paused" not in shop.get("deployments")["spec"]
    assert shop.get()["status"]["image"] == FORMER

    shop.serve(new)
    shop.serve(shop.next())
    shop.await_condition("Ready", "AllServersReady")
    assert shop.get()["status"]["image"] == NEXT
