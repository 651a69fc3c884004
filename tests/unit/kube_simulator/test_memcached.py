"""Real memcached processes in the place of containers: addresses, restarts, and that none is left behind."""

import asyncio
import contextlib
import os
import random
import select
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kube_simulator.controllers import memcached
from kube_simulator.requests.types import DeleteOptions
from kube_simulator.values import Json
from tests.unit.kube_simulator.world import DEADLINE_S, NAMESPACE, World, ready, turns

PROJECT = Path(__file__).resolve().parents[3]
# Starts one memcached as the simulator does, says where once it answers, and waits to be killed.
PARENT = """
import asyncio, random, sys
from kube_simulator.controllers import memcached
async def main():
    address = memcached.free_address(memcached.PORT, lambda _address: False, random.Random())
    command = memcached.Command("memcached", (), memcached.PORT)
    process = await memcached.launch(sys.argv[1], command, address)
    ended = asyncio.ensure_future(process.wait())
    assert await memcached._answers(address, memcached.PORT, ended)
    print(process.pid, address, flush=True)
    await ended
asyncio.run(main())
"""


@pytest.fixture(scope="session")
def program() -> str:
    """The machine's memcached; where it must be there (CI), it is a failure that it is not."""
    found = memcached.find_program()
    if found is None and not os.environ.get("CI"):
        pytest.skip("no memcached on the PATH, or not on Linux")
    assert found is not None
    return found


@pytest.fixture
async def node(program: str) -> AsyncIterator[World]:
    """A node on which pods that run memcached are real, and ready as soon as they answer."""
    async with World() as running:
        yield running


def pod(*arguments: str, **spec: object) -> Json:
    container = {"name": "cache", "image": "memcached:1.6", "command": ["memcached", *arguments]}
    return {"metadata": {"name": "a"}, "spec": {"containers": [container], "terminationGracePeriodSeconds": 5, **spec}}


async def start(world: World, *arguments: str, **spec: object) -> Json:
    await world.create("pods", pod(*arguments, **spec))
    await world.until(lambda: ready(world.get("pods", "a")))
    return world.get("pods", "a")


async def query(address: str, command: bytes, port: int = memcached.PORT) -> bytes:
    """The first line of the answer to commands of the text protocol."""
    async with asyncio.timeout(DEADLINE_S):
        reader, writer = await asyncio.open_connection(address, port)
        with contextlib.closing(writer):
            writer.write(command)
            return await reader.readline()


async def status(address: str, name: str) -> str:
    """A setting or statistic of the process."""
    async with asyncio.timeout(DEADLINE_S):
        reader, writer = await asyncio.open_connection(address, memcached.PORT)
        with contextlib.closing(writer):
            writer.write(b"stats settings\r\nstats\r\nquit\r\n")
            lines = (await reader.read()).decode().splitlines()
    return next(line.split()[2] for line in lines if line.startswith(f"STAT {name} "))


def listens(address: str) -> bool:
    with socket.socket() as client:
        return client.connect_ex((address, memcached.PORT)) == 0


def container(world: World) -> Json:
    """The status of the pod's container; nothing in it before there is one."""
    [found] = world.get("pods", "a")["status"].get("containerStatuses") or [{"state": {}}]
    return dict(found)


async def test_a_key_that_is_set_is_got_from_the_pod_s_address(node: World) -> None:
    address = (await start(node, "-m", "64", "-o", "modern", "-v"))["status"]["podIP"]
    assert address.startswith("127.")
    assert await query(address, b"set k 0 0 5\r\nvalue\r\n") == b"STORED\r\n"
    assert await query(address, b"get k\r\n") == b"VALUE k 0 5\r\n"
    assert await status(address, "maxbytes") == str(64 * 2**20)


async def test_a_process_ends_with_its_pod_killed_if_it_does_not_listen(node: World) -> None:
    address = (await start(node, terminationGracePeriodSeconds=1))["status"]["podIP"]
    os.kill(int(await status(address, "pid")), signal.SIGSTOP)
    await node.delete("pods", "a")
    assert "deletionTimestamp" in node.get("pods", "a")["metadata"]
    await node.until(lambda: node.gone("pods", "a"))
    assert not listens(address)


async def test_a_process_ends_at_once_with_a_pod_that_is_deleted_by_force(node: World) -> None:
    address = (await start(node))["status"]["podIP"]
    await node.api.delete(node.target("pods", "a"), DeleteOptions(grace_period_s=0))
    assert node.gone("pods", "a")
    await turns(lambda: not listens(address))


async def test_a_process_ends_with_the_node(node: World) -> None:
    address = (await start(node))["status"]["podIP"]
    await node.manager.kubelet.stop()
    assert not listens(address)


async def test_a_process_that_dies_is_started_again(node: World) -> None:
    address = (await start(node))["status"]["podIP"]
    node.manager.kubelet.crash(NAMESPACE, "a")
    await node.until(lambda: container(node)["restartCount"] == 1 and ready(node.get("pods", "a")))
    last = container(node)["lastState"]["terminated"]
    assert (last["exitCode"], last["signal"], last["reason"]) == (137, 9, "Error")
    assert node.get("pods", "a")["status"]["podIP"] == address
    os.kill(int(await status(address, "pid")), signal.SIGKILL)
    await node.until(lambda: container(node)["restartCount"] == 2 and ready(node.get("pods", "a")))


def test_when_its_parent_is_killed_memcached_is_gone_too(program: str) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, program], stdout=subprocess.PIPE, text=True, cwd=PROJECT)
    with parent:
        try:
            assert parent.stdout is not None
            pid, address = parent.stdout.readline().split()
            ends = os.pidfd_open(int(pid))
            assert listens(address)
        finally:
            parent.kill()
    assert select.select([ends], [], [], DEADLINE_S)[0], "it has not ended"
    os.close(ends)
    assert not listens(address)


def test_an_address_that_is_taken_or_listened_on_is_passed_over() -> None:
    first = memcached.free_address(memcached.PORT, lambda _address: False, random.Random(7))
    second = memcached.free_address(memcached.PORT, lambda address: address == first, random.Random(7))
    with socket.socket() as other:
        other.bind((second, memcached.PORT))
        third = memcached.free_address(memcached.PORT, lambda address: address == first, random.Random(7))
    assert len({first, second, third}) == 3


@pytest.mark.parametrize(
    ("container", "arguments", "port"),
    [
        ({"image": "registry.example.com/memcached:1.6-alpine"}, (), 11211),
        ({"image": "memcached", "args": ["memcached", "-v"]}, ("-v",), 11211),
        ({"image": "x", "command": ["memcached", "-l", "0.0.0.0", "-u", "me", "-d", "-v"]}, ("-v",), 11211),
        ({"image": "x", "command": ["memcached", "--listen=::", "--user", "me", "-l::1"]}, (), 11211),
        ({"image": "x", "command": ["memcached", "-m", "64", "-p", "11311"]}, ("-m", "64", "-p", "11311"), 11311),
        ({"image": "x", "command": ["memcached", "--port=11313"]}, ("--port=11313",), 11313),
    ],
)
def test_a_container_s_own_arguments_are_kept_but_where_it_listens(
    container: Json, arguments: tuple[str, ...], port: int
) -> None:
    found = memcached.command_of(
        {"spec": {"containers": [{"name": "side", "image": "side"}, {"name": "c", **container}]}}
    )
    assert found == memcached.Command("c", arguments, port)


@pytest.mark.parametrize("container", [{"image": "web"}, {"image": "memcached", "command": ["sleep", "1"]}])
def test_what_does_not_run_memcached_is_simulated(container: Json) -> None:
    assert memcached.command_of({"spec": {"containers": [{"name": "c", **container}]}}) is None
