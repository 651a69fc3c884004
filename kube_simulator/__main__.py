"""The simulator for people: `python -m kube_simulator` starts one and stays until Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import uvloop

_REMEDY = "pip install 'memcached-operator[demo]'"
# What is stored is trees of dicts without cycles. CPython's 700 has the collector walk all of them again and again.
_CONTAINERS_BETWEEN_COLLECTIONS = 50_000


def main(arguments: Sequence[str]) -> int:
    """Run it and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m kube_simulator", description=__doc__)
    where = (
        "where to write the administrator's kubeconfig: a path where nothing is yet; removed at the end (default: in a "
    )
    parser.add_argument("--kubeconfig", type=Path, help=where + "temporary folder)")
    ready = "seconds until a pod is ready (default: %(default)s)"
    parser.add_argument("--ready-after", type=float, default=1.0, metavar="S", help=ready)
    simulated = "simulate pods even where there is a memcached to run for them"
    parser.add_argument("--no-memcached", action="store_true", help=simulated)
    options = parser.parse_args(arguments)
    gc.set_threshold(_CONTAINERS_BETWEEN_COLLECTIONS)
    try:
        kubeconfig = options.kubeconfig and options.kubeconfig.absolute()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_up(kubeconfig, options.ready_after, memcached=not options.no_memcached))
    except ImportError as error:
        print(f"simulator: it needs {error.name}, which is not installed: {_REMEDY}", file=sys.stderr)
    except OSError as error:
        print(f"simulator: {error}", file=sys.stderr)
    return 1


async def _up(kubeconfig: Path | None, ready_after_s: float, *, memcached: bool) -> int:
    from kube_simulator import Options, Simulator

    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    options = Options(pods_ready_after_s=ready_after_s, memcached="auto" if memcached else False)
    async with Simulator(options) as simulator:
        with _copied(simulator.kubeconfig_path, kubeconfig) as shown:
            _print_summary(simulator.server, simulator.directory, shown, ready_after_s, real=memcached)
            await stop.wait()
    print("simulator: stopped")
    return 0


@contextmanager
def _copied(original: Path, desired: Path | None) -> Iterator[Path]:
    """The kubeconfig where it is desired, until the end of the block.

    Raises:
        FileExistsError: something is there already, which may be somebody's only access to a cluster.
    """
    if desired is None:
        yield original
        return
    desired.parent.mkdir(parents=True, exist_ok=True)
    # Private from the first byte on: it holds the administrator's key.
    with open(os.open(desired, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as copy:
        copy.write(original.read_bytes())
    try:
        yield desired
    finally:
        desired.unlink(missing_ok=True)


def _print_summary(server: str, directory: Path, kubeconfig: Path, ready_after_s: float, *, real: bool) -> None:
    from kube_simulator.controllers.memcached import find_program

    program = find_program() if real else None
    operator = shutil.which("memcached-operator") or f"{sys.executable} -m memcached_operator"
    pods = f"become ready after {ready_after_s:g} s"
    if program is not None:
        pods += f"; those of memcached are real processes ({program})"
    print(
        f"A simulated Kubernetes API is ready at {server}; its files are in {directory}.\n"
        f"It has an API server and controllers: pods are made, and {pods}.\n"
        "\n"
        "In another terminal:\n"
        f"  export KUBECONFIG={kubeconfig}\n"
        f"  {operator} crd | kubectl apply --server-side -f -\n"
        f"  {operator} run                                   # the operator, until Ctrl-C\n"
        "\n"
        "And in a third, with the same KUBECONFIG, what a user does: create a Memcached, and kubectl get memcached\n"
        "\n"
        "Ctrl-C ends it and removes everything.",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
