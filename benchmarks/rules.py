"""``python -m benchmarks.rules``: what the rules of the CustomResourceDefinition cost the API server on each write.

Memcacheds are created, and their status is written, under the definition and under the same one without rules, in
turn: only the difference counts, as everything else is the same.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from typing import Any

import orjson

from benchmarks.endpoint import MEMCACHEDS, NAMESPACE, Endpoint, memcached
from benchmarks.process import cpu_s
from lab.control_plane import ControlPlane
from memcached_operator.api.crd import memcached_crd

_WRITERS = 8
_RULES = "x-kubernetes-validations"
# Of a StatefulSet of three with a disk: most rules have something to look at.
_SPEC = {
    "size": 3,
    "workload": "StatefulSet",
    "extstore": {"size": "100Gi", "volume": {"ephemeral": {}}},
    "memoryScaling": {"max": "1Gi"},
}
_STATUS = {"replicas": 3, "readyReplicas": 3, "serverList": [f"shop-{index}.shop:11211" for index in range(3)]}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rules", description=__doc__)
    parser.add_argument("--count", type=int, default=1500, metavar="N", help="Memcacheds per round (default: 1500)")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds of both (default: 3)")
    options = parser.parse_args(arguments)
    with ControlPlane() as control_plane:
        for number in range(options.rounds):
            for with_rules in (True, False):
                _install(control_plane, with_rules=with_rules)
                prefix = f"{'with' if with_rules else 'without'}-{number}"
                created_s, written_s = asyncio.run(_measure(control_plane, prefix, options.count))
                print(
                    f"round {number + 1}, {'with rules' if with_rules else 'without rules'}: CPU of kube-apiserver "
                    f"{created_s / options.count * 1000:.2f} ms for a create, "
                    f"{written_s / options.count * 1000:.2f} ms for a status"
                )
    return 0


def _install(control_plane: ControlPlane, *, with_rules: bool) -> None:
    crd: Any = memcached_crd()
    if not with_rules:
        crd = _without_rules(crd)
    control_plane.kubectl("apply", "--server-side", "-f", "-", input=orjson.dumps(crd).decode())
    control_plane.kubectl("wait", "--for=condition=Established", "--timeout=30s", f"crd/{crd['metadata']['name']}")


def _without_rules(part: Any) -> Any:
    if isinstance(part, list):
        return [*map(_without_rules, part)]
    if not isinstance(part, dict):
        return part
    return {name: _without_rules(each) for name, each in part.items() if name != _RULES}


async def _measure(control_plane: ControlPlane, prefix: str, count: int) -> tuple[float, float]:
    """CPU in seconds for all creates, and for all writes of a status."""
    pid = control_plane.apiserver_pid
    assert pid is not None, "it runs as long as its control plane"
    endpoint = Endpoint.from_kubeconfig(
        control_plane.user_kubeconfig("bench", ["system:masters"]), control_plane.ca_path
    )
    names = [f"{prefix}-{index}" for index in range(count)]
    async with endpoint.session(_WRITERS) as session:

        async def send(method: str, path: str, body: object, content_type: str) -> None:
            data, headers = orjson.dumps(body), {"Content-Type": content_type}
            async with session.request(method, path, data=data, headers=headers, raise_for_status=True) as answer:
                await answer.read()

        async def all_of(requests: Sequence[tuple[str, str, object, str]]) -> float:
            before_s, left = cpu_s(pid), iter(requests)

            async def writer() -> None:
                for request in left:
                    await send(*request)

            await asyncio.gather(*(writer() for _ in range(_WRITERS)))
            return cpu_s(pid) - before_s

        bodies = [{**memcached(name, 3, extras=True), "spec": _SPEC} for name in names]
        created_s = await all_of([("POST", MEMCACHEDS.path(NAMESPACE), body, "application/json") for body in bodies])
        status = {"status": _STATUS}
        paths = [f"{MEMCACHEDS.path(NAMESPACE, name)}/status" for name in names]
        written_s = await all_of([("PATCH", path, status, "application/merge-patch+json") for path in paths])
    return created_s, written_s


if __name__ == "__main__":
    sys.exit(main())
