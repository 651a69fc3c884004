"""Files and functions of the product and the runtime that one reconcile enters; the bounds may only fall."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import pytest

import memcached_operator
import operator_runtime
from memcached_operator.core.objects.pod_template import _made
from tests.unit.fake_server import Json
from tests.unit.memcached_operator.features.handover.test_handover_reconciler import begun
from tests.unit.memcached_operator.world import DELAY_S, PATCH, World

PACKAGES = tuple(f"{Path(package.__file__ or '').parent}/" for package in (memcached_operator, operator_runtime))
OF_TESTS = f"{PACKAGES[1]}testing/"
# With the objects that each Memcached has by default.
DEFAULTS: Json = {"service": {}, "disruptionBudget": None}


# Of features, a budget alone is on by default.
ON = {"disruption_budget/budget.py"}


class Entered(NamedTuple):
    """How many files, and how many functions in them, were entered; and which files of features."""

    files: int
    functions: int
    features: frozenset[str] = frozenset()


Case = Callable[[], Awaitable[Entered]]


async def entered(doing: Callable[[], Awaitable[object]]) -> Entered:
    """Count what is entered meanwhile, coroutines and methods among it, lambdas and comprehensions not."""
    found: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        is_named = event == "call" and not code.co_name.startswith("<")
        if is_named and code.co_filename.startswith(PACKAGES) and not code.co_filename.startswith(OF_TESTS):
            found.add(code)

    sys.setprofile(note)
    try:
        await doing()
    finally:
        sys.setprofile(None)
    files = {code.co_filename for code in found}
    features = frozenset(each.partition("/features/")[2] for each in files if "/features/" in each)
    return Entered(len(files), len(found), features)


async def of_no_change() -> Entered:
    world = await deployment()
    found = await entered(lambda: world.reconcile(after_s=DELAY_S))
    assert not world.api.calls
    return found


async def of_one_server_more() -> Entered:
    world = await deployment()
    world.memcached(size=4, **DEFAULTS)
    world.show()
    found = await entered(lambda: world.reconcile(after_s=DELAY_S))
    assert PATCH in world.api.verbs()
    return found


async def deployment() -> World:
    """Three servers of a Deployment, and nothing to do."""
    world = World()
    world.memcached(size=3, **DEFAULTS)
    await world.reconcile_shown()
    world.pods(3)
    world.deployment["status"] = {"observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3}
    world.api.put(world.deployment)
    await world.settle()
    world.show()
    return world


async def of_a_handover() -> Entered:
    """Fills are under way, and nothing is to be done but to wait."""
    servers = await begun(3)
    servers.size(4, **DEFAULTS)
    await servers.until("Published")
    await servers.control_and_reconcile()
    servers.control()
    servers.world.show()
    return await entered(lambda: servers.reconcile(0.3))


MOST: dict[Case, Entered] = {
    of_no_change: Entered(34, 126),
    of_one_server_more: Entered(48, 224),
    of_a_handover: Entered(45, 180),
}
"""Lower a number where a change makes it smaller."""


@pytest.mark.parametrize("case", MOST, ids=lambda case: case.__name__)
async def test_a_reconcile_enters_no_more_files_and_functions_than_before(case: Case) -> None:
    await case()  # fills what is remembered
    found, most = await case(), MOST[case]
    assert found.files <= most.files
    assert found.functions <= most.functions


async def test_features_that_are_off_are_not_entered() -> None:
    _made.cache_clear()  # so that pods are made
    found = await of_no_change()
    assert found.features == ON
