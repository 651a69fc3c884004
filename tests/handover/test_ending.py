"""A server whose pod is ending: what it hears, on which listener, and what its pod's hook makes of that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from memcached_operator.features.handover import handover_proxy
from memcached_operator.features.handover.server_state import DONE
from operator_runtime.testing.waiting import async_eventually
from tests.handover.changes import started
from tests.handover.scripts import MOVING, cluster_of, needs_memcached
from tests.handover.servers import Server, connected
from tests.shells import SHELLS, words_of

pytestmark = needs_memcached
HOOK = Path(handover_proxy.__file__).with_name("before_end.sh")
PEERS = "7\n10.0.0.7 11210 joining\nfd00::3 11210\nclosed"
ENDS_WITHIN_S = 3.0
UNHEARD_S = 19.0


@asynccontextmanager
async def _serving(folder: Path) -> AsyncIterator[Server]:
    cluster = cluster_of(folder, 1, script=MOVING)
    async with started(cluster, 1):
        yield cluster.servers[0]


@asynccontextmanager
async def _hook(server: Server, shell: str) -> AsyncIterator[asyncio.subprocess.Process]:
    hook = await asyncio.create_subprocess_exec(*words_of(shell), str(HOOK), str(server.shared))
    try:
        yield hook
    finally:
        if hook.returncode is None:
            hook.kill()
            await hook.wait()


async def _begun(server: Server) -> None:
    async def is_waiting() -> bool:
        return server.shared is not None and (server.shared / "ending").exists()

    await async_eventually(is_waiting, bool, what="the hook waits")


@pytest.mark.parametrize("shell", SHELLS)
async def test_a_server_hears_its_peers_and_its_pod_ends_when_it_may(folder: Path, shell: str) -> None:
    async with _serving(folder) as server, _hook(server, shell) as hook:
        await _begun(server)
        assert await server.say("") is True
        assert await server.say(PEERS) is True
        await server.confirmed(7)
        async with connected(server.port) as client:
            assert await client.answer("set a 0 0 1\r\nb") == "SERVER_ERROR this server is about to end\r\n"
        assert server.shared is not None
        assert await server.say("5") is True  # of an operator that is behind
        assert (server.shared / "told").read_text() == PEERS
        server.update_peers(8, [])
        await server.confirmed(8)
        assert hook.returncode is None
        assert await server.say(DONE) is True
        assert await asyncio.wait_for(hook.wait(), ENDS_WITHIN_S) == 0


async def test_no_client_says_what_peers_a_server_has_or_that_its_pod_may_end(folder: Path) -> None:
    async with _serving(folder) as server:
        assert server.shared is not None
        assert await server.say(PEERS) is not True  # before the hook
        assert await server.say(DONE) is not True
        server.end()
        for port in (server.port, server.peer_port):
            async with connected(port) as client:
                assert await client.answer("mg 9,10.0.0.7/11210", f"mg {DONE}") == "EN\r\nEN\r\n"
        assert {each.name for each in server.shared.iterdir()} == {"listens", "ending"}


@pytest.mark.parametrize("shell", SHELLS)
async def test_a_pod_without_the_proxy_does_not_wait(folder: Path, shell: str) -> None:
    hook = await asyncio.create_subprocess_exec(*words_of(shell), str(HOOK), str(folder))
    assert await asyncio.wait_for(hook.wait(), ENDS_WITHIN_S) == 0


@pytest.mark.slow
async def test_a_pod_that_hears_of_no_operator_waits_20_s(folder: Path) -> None:
    async with _serving(folder) as server, _hook(server, "sh") as hook:
        await _begun(server)
        began_s = asyncio.get_running_loop().time()
        assert await server.say("") is True
        await asyncio.wait_for(hook.wait(), UNHEARD_S * 3)
        assert asyncio.get_running_loop().time() - began_s >= UNHEARD_S
