"""Secrets that are missing or wrong, and passwords in the clear, through the reconciler."""

from __future__ import annotations

import pytest

from tests.unit.fake_server import Json
from tests.unit.memcached_operator.running_servers import EVICT, PAUSE_S, get_ready, pod, reasons, sent
from tests.unit.memcached_operator.world import World

MISSING = "SecretNotFound: there is no Secret cache-tls with the key tls.crt"
GOES_ON = "Running servers continue; new ones start once this is corrected."


def record_event(pod: Json, message: str) -> None:
    """The pod's sidecar ended with these words, and was started again."""
    last = {"terminated": {"exitCode": 1, "message": message}}
    pod["status"] |= {
        "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}],
        "containerStatuses": [{"name": "memcached", "state": {"waiting": {"reason": "PodInitializing"}}}],
        "initContainerStatuses": [{"name": "reloader", "started": False, "state": {"running": {}}, "lastState": last}],
    }


def pods(world: World) -> list[Json]:
    return [found for (kind, _, _), found in sorted(world.api.objects.items()) if kind == "Pod"]


async def report_problems(world: World, *messages: str) -> None:
    """Have the first pods say that."""
    for each, message in zip(pods(world), messages, strict=False):
        record_event(each, message)
        world.api.put(each)
    await world.writes()


@pytest.fixture
async def running(world: World) -> World:
    world.memcached(size=2, tls={"secretName": "cache-tls"})
    await world.reconcile_shown()
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
    await report_problems(running, message)
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
    await report_problems(running, MISSING, other)
    assert running.condition("Degraded") == ("True", "CertificateInvalid")
    await report_problems(running, MISSING, MISSING)
    assert running.condition("Degraded") == ("True", "SecretNotFound")
    await report_problems(running, "Segmentation fault", "Segmentation fault")
    assert running.condition("Degraded") == ("False", "AsExpected"), "that is no reason of a condition"
    assert "Segmentation fault" in running.message("Available")


async def test_passwords_in_the_clear_are_told_once_and_are_a_condition_until_there_is_tls(world: World) -> None:
    auth = {"auth": {"secretName": "cache-passwords"}}
    counts, discouraged = [], []
    for spec in (auth, auth | {"size": 2}, auth | {"tls": {"secretName": "cache-tls"}}, auth):
        world.memcached(**spec)
        await world.writes()
        counts.append([each.reason for each in world.recorder.events].count("PasswordsInTheClear"))
        discouraged.append(world.condition("Discouraged")[1])
    assert counts == [1, 1, 1, 2]
    assert discouraged == ["PasswordsInTheClear", "PasswordsInTheClear", "AsExpected", "PasswordsInTheClear"]


REMOVED = "AuthorityRemoved: memcached trusts a CA that is no longer in ca.crt of the Secret cache-tls"
FAILED = "ReloadFailed: memcached keeps what the Secrets had before, as the container reloader may not signal it"


async def test_of_two_things_that_are_not_recommended_each_is_said_once_also_by_a_new_leader() -> None:
    world = World()
    balanced, auth = {"service": {"type": "ClusterIP"}}, {"auth": {"secretName": "a"}}
    for more, expected in (
        (balanced, ["LoadBalancedServers"]),
        (balanced | auth, ["PasswordsInTheClear"]),
        (balanced | auth | {"memory": "128Mi"}, []),
    ):
        world.memcached(size=2, **more)
        await world.writes()
        found = [each.reason for each in world.recorder.events if each.type == "Warning"]
        assert found == expected
        world.recorder.events.clear()
    assert world.condition("Discouraged") == ("True", "LoadBalancedServers")
    leader = World(api=world.api)
    leader.memcached(size=2, **balanced, **auth, threads=8)
    await leader.writes()
    assert not [each for each in leader.recorder.events if each.type == "Warning"]


def report_running(world: World, ordinal: int, message: str, **now: object) -> None:
    """The sidecar of a server that runs ended with these words, and was started again."""
    last = {"terminated": {"exitCode": 1, "reason": "Error", "message": f"{message}\n"}}
    sidecar = {"name": "reloader", "started": True, "state": {"running": {}}, "lastState": last}
    pod(world, ordinal)["status"]["initContainerStatuses"] = [sidecar | now]
    world.api.put(pod(world, ordinal))


async def test_servers_that_trust_a_ca_which_was_taken_out_are_replaced_at_the_pace_of_a_rollout(named: World) -> None:
    named.clock.advance(PAUSE_S)
    for ordinal in range(3):
        report_running(named, ordinal, REMOVED)
    assert await sent(named) == [EVICT]
    assert named.condition("Progressing") == ("True", "Updating")
    trusting = "A CA that is no longer in ca.crt is still accepted by sessions-0, sessions-1."
    assert named.message("Progressing").endswith(f" once all have been ready for 60 s. {trusting}")
    for left in (1, 0):
        named.clock.advance(PAUSE_S)
        assert await sent(named) == [EVICT], left
    assert named.condition("Progressing") == ("False", "Complete")
    notes = [each.note for each in named.recorder.events if each.reason == "Replacing"]
    assert notes[0] == "Replacing the server sessions-2 by one that trusts no CA but those in ca.crt, 2 more to follow"
    assert len(notes) == 3
    named.clock.advance(PAUSE_S)
    assert await sent(named) == []


async def test_one_whose_sidecar_says_that_it_is_over_stays(named: World) -> None:
    named.clock.advance(PAUSE_S)
    report_running(named, 0, REMOVED)
    named.memcached(size=3, workload="StatefulSet", rollout={"paused": True})
    assert await sent(named) == []
    assert "still accepted by sessions-0" in named.message("Progressing")
    assert named.condition("Progressing") == ("False", "RolloutPaused")
    report_running(named, 0, "")
    named.memcached(size=3, workload="StatefulSet")
    assert await sent(named) == []
    assert named.condition("Progressing") == ("False", "Complete")


async def test_a_sidecar_that_is_about_to_start_again_makes_no_server_one_without_keys(named: World) -> None:
    """It ended for its words to be seen: until it has started its pod is not ready, and memcached serves."""
    named.clock.advance(PAUSE_S)
    for ordinal in range(3):
        get_ready(named, ordinal, ready=False)
        ended = {"terminated": {"exitCode": 1, "reason": "Error", "message": REMOVED}}
        report_running(named, ordinal, "", started=False, state=ended)
    assert await sent(named) == []
    assert "Error" not in named.message("Available")


async def test_servers_that_could_not_be_told_to_reload_are_named_and_not_replaced(named: World) -> None:
    named.clock.advance(PAUSE_S)
    report_running(named, 1, FAILED)
    report_running(named, 2, FAILED)
    assert await sent(named) == []
    assert named.condition("Degraded") == ("True", "ReloadFailed")
    assert named.message("Degraded") == (
        f"sessions-1, sessions-2: {FAILED.partition(': ')[2]}. "
        "Correct spec.podTemplate, which replaces the servers, or replace them with `kubectl rollout restart`."
    )
    assert reasons(named).count("ReloadFailed") == 1
    for ordinal in (1, 2):
        report_running(named, ordinal, "")
    await sent(named)
    assert named.condition("Degraded") == ("False", "AsExpected")
