"""Secrets that are missing or wrong, and passwords in the clear, through the reconciler."""

from __future__ import annotations

import pytest

from tests.unit.fake_server import Json
from tests.unit.memcached_operator.memcached.world import World

MISSING = "SecretNotFound: there is no Secret cache-tls with the key tls.crt"
GOES_ON = "Running servers continue; new ones start once this is corrected."


def say(pod: Json, message: str) -> None:
    """The pod's sidecar ended with these words, and was started again."""
    last = {"terminated": {"exitCode": 1, "message": message}}
    pod["status"] |= {
        "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}],
        "containerStatuses": [{"name": "memcached", "state": {"waiting": {"reason": "PodInitializing"}}}],
        "initContainerStatuses": [{"name": "reloader", "started": False, "state": {"running": {}}, "lastState": last}],
    }


def pods(world: World) -> list[Json]:
    return [found for (kind, _, _), found in sorted(world.api.objects.items()) if kind == "Pod"]


async def told(world: World, *messages: str) -> None:
    """Have the first pods say that."""
    for pod, message in zip(pods(world), messages, strict=False):
        say(pod, message)
        world.api.put(pod)
    await world.writes()


@pytest.fixture
async def running(world: World) -> World:
    world.memcached(size=2, tls={"secretName": "cache-tls"})
    await world.look()
    world.pods(2)
    await world.settle()
    return world


@pytest.mark.parametrize(
    ("message", "reason", "words"),
    [
        (MISSING, "SecretNotFound", f"there is no Secret cache-tls with the key tls.crt. {GOES_ON}"),
        ("CertificateInvalid: key tls.key: no match", "CertificateInvalid", f"key tls.key: no match. {GOES_ON}"),
        ("PasswordsInvalid: line 3.", "PasswordsInvalid", f"line 3. {GOES_ON}"),
        ("ReloadUnsupported: memcached 1.6.18", "ReloadUnsupported", f"memcached 1.6.18. {GOES_ON}"),
    ],
)
async def test_what_new_servers_wait_for_is_told(running: World, message: str, reason: str, words: str) -> None:
    await told(running, message)
    assert running.condition("Degraded") == ("True", reason)
    assert running.message("Degraded") == words
    assert running.condition("Ready") == ("False", reason)
    assert running.message("Available") == f"1 of 2 servers are ready: 1 with {message}"
    assert [each.reason for each in running.recorder.events].count(reason) == 1
    running.pods(2)
    assert await running.writes() == ["merge_patch/status Memcached"]
    assert running.condition("Degraded") == ("False", "AsExpected")


async def test_of_several_problems_that_of_most_servers_is_told(running: World) -> None:
    other = "CertificateInvalid: key tls.crt: junk"
    await told(running, MISSING, other)
    assert running.condition("Degraded") == ("True", "CertificateInvalid")
    await told(running, MISSING, MISSING)
    assert running.condition("Degraded") == ("True", "SecretNotFound")
    await told(running, "Segmentation fault", "Segmentation fault")
    assert running.condition("Degraded") == ("False", "AsExpected"), "that is no reason of a condition"
    assert "Segmentation fault" in running.message("Available")


async def test_passwords_in_the_clear_are_told_once_and_are_a_condition_until_there_is_tls(world: World) -> None:
    auth = {"auth": {"secretName": "cache-passwords"}}
    counts, discouraged = [], []
    for spec in (auth, auth | {"size": 2}, auth | {"tls": {"secretName": "cache-tls"}}, auth):
        world.memcached(**spec)
        await world.writes()
        counts.append([each.reason for each in world.recorder.events].count("PasswordsInTheClear"))
        types = {each["type"]: each["reason"] for each in world.status["conditions"]}
        discouraged.append(types.get("Discouraged"))
    assert counts == [1, 1, 1, 2]
    assert discouraged == ["PasswordsInTheClear", "PasswordsInTheClear", None, "PasswordsInTheClear"]
