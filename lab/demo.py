"""``python -m lab demo``: the demo of the operator, with --real on the lab's control plane instead of the simulator.

That has no nodes, so that the demo plays the kubelet.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from ipaddress import IPv4Network
from typing import Any

import orjson

from lab.cache import BuildError
from lab.control_plane import ControlPlane
from lab.kubectl import LabError
from memcached_operator import cli
from memcached_operator.demo import demo_command
from memcached_operator.demo.cluster_state import NAMESPACE, ready, terminating
from memcached_operator.demo.clusters import READY_AFTER_S, DemoCluster, NoClusterError, client_of
from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import KubeError
from operator_runtime.client.resources import PODS
from operator_runtime.process.flags import answered, parse

_REAL = "--real"
_READ_EVERY_S = 0.2
_FIELD_MANAGER = "demo-kubelet"
# For documentation: nobody has these, and nothing listens on them.
_ADDRESSES = IPv4Network("198.51.100.0/24")


def main(arguments: Sequence[str]) -> int:
    """Show the demo and return the exit code."""
    words = [each for each in arguments if each != _REAL]
    if len(words) == len(arguments):
        return cli.main(["demo", *arguments])

    def run() -> int:
        return demo_command.run(replace(cli.demo_options(parse(cli.parser_of("demo"), words)), cluster=real))

    return answered("demo", run)


@asynccontextmanager
async def real() -> AsyncIterator[DemoCluster]:
    """The lab's control plane: a real API server, without nodes, so that somebody must play the kubelet.

    Raises:
        NoClusterError: the control plane cannot be built or started.
    """
    loop = asyncio.get_running_loop()

    async def restart_controllers() -> None:
        """The garbage collector learns of a new kind when it starts, and else every 30 s: too long to watch."""
        await loop.run_in_executor(None, control_plane.stop_controller_manager)
        await loop.run_in_executor(None, control_plane.start_controller_manager)

    try:
        control_plane = await loop.run_in_executor(None, ControlPlane)
    except (BuildError, OSError) as error:
        raise NoClusterError(str(error)) from error
    try:
        try:
            await loop.run_in_executor(None, control_plane.start)
        except LabError as error:
            raise NoClusterError(str(error)) from error
        async with client_of(control_plane.kubeconfig_path) as client:
            kubelet = asyncio.create_task(play_the_kubelet(client, READY_AFTER_S))
            try:
                yield DemoCluster(
                    server=control_plane.server,
                    kubeconfig=control_plane.kubeconfig_path,
                    what="a real kube-apiserver, etcd and controller-manager",
                    real_pods=False,
                    pods=(
                        "simulated (the control plane has no nodes: the demo plays the kubelet), so that no keys are "
                        "stored in them"
                    ),
                    kind_installed=restart_controllers,
                )
            finally:
                kubelet.cancel()
    finally:
        await loop.run_in_executor(None, control_plane.stop)


async def play_the_kubelet(client: ApiClient, ready_after_s: float) -> None:
    """Make each new pod ready after a while, until cancelled."""
    seen: set[str] = set()
    addresses = _addresses()
    while True:
        try:
            pods = orjson.loads(await client.request("GET", PODS.path(NAMESPACE)))["items"]
            new = [each["metadata"]["name"] for each in pods if not ready(each) and not terminating(each)]
            for name in new:
                if name in seen:
                    await client.patch(
                        PODS,
                        NAMESPACE,
                        name,
                        _ready_at(next(addresses)),
                        field_manager=_FIELD_MANAGER,
                        subresource="status",
                    )
            seen = set(new)
        except KubeError:
            pass  # it went meanwhile, or the server is away: the next look tells
        await asyncio.sleep(max(_READ_EVERY_S, ready_after_s))


def _addresses() -> Iterator[str]:
    """One after the other, and again from the first: the pods that had those have long gone."""
    while True:
        yield from map(str, _ADDRESSES.hosts())


def _ready_at(address: str) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": "True"}]
    return {"status": {"phase": "Running", "conditions": conditions, "podIP": address, "podIPs": [{"ip": address}]}}
