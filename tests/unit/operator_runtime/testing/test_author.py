"""What an author writes with the kit: an operator of a kind of one's own, against the fixture `simulator`."""

from __future__ import annotations

import logging

import pytest

from kube_simulator import Refuse
from operator_runtime import NotFound, ObjectKey, Operator, RuntimeSettings, plain
from operator_runtime.testing.cluster import SimulatedCluster
from operator_runtime.testing.waiting import async_eventually, async_until
from tests.unit.operator_runtime.testing.greetings import API_VERSION, CONFIG_MAPS, CRD, GREETINGS, set_up

OPERATOR = "operator-under-test/"
WORLD = ObjectKey("default", "world")
GREETING = f"""
apiVersion: {API_VERSION}
kind: Greeting
metadata:
  name: world
spec:
  name: World
"""


@pytest.fixture
def greetings(simulator: SimulatedCluster) -> SimulatedCluster:
    """A cluster that knows the kind."""
    simulator.install(CRD)
    return simulator


async def test_a_greeting_is_said(greetings: SimulatedCluster) -> None:
    async with greetings.operator(set_up), greetings.client() as client:
        await greetings.apply(GREETING)
        greeting = await async_eventually(
            lambda: client.get(GREETINGS, WORLD), lambda greeting: greeting.status.words != "", what="it is said"
        )
        assert greeting.status.words == "Hello, World!"
        assert (await client.get(CONFIG_MAPS, WORLD)).body["data"] == {"words": "Hello, World!"}


async def test_a_server_that_refuses_is_asked_again(
    greetings: SimulatedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    greetings.install(GREETING)
    with greetings.fault(Refuse(503), verb="patch", resource="configmaps", agent=OPERATOR, times=2) as rule:
        async with greetings.operator(set_up), greetings.client() as client:
            await async_eventually(lambda: client.get(CONFIG_MAPS, WORLD), lambda _: True, ignoring=NotFound)
    assert rule.used == 2
    assert "recovered after 2 failed attempts" in caplog.text


async def test_a_wrong_plural_is_told_with_the_right_one(
    greetings: SimulatedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = plain(API_VERSION, "Greeting", "greetingz")

    def set_up_wrong(operator: Operator, settings: RuntimeSettings) -> None:
        operator.informer(wrong, optional=True)

    async with greetings.operator(set_up_wrong):
        await async_until("nothing is told", lambda: "cannot watch greetingz." in caplog.text)
    said = f"The plural of Greeting in {API_VERSION} is 'greetings': declare it so. The operator keeps trying"
    assert said in caplog.text
