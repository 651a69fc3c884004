"""The lab for people: ``python -m lab up`` starts a control plane, ``kubectl`` talks to it, ``build`` prepares both."""

import argparse
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from lab import build
from lab.control_plane import ControlPlane
from lab.kubectl import LabError

DEFAULT_KUBECONFIG = Path(__file__).resolve().parent.parent / ".cache" / "lab" / "kubeconfig"

_PARENT_CHECK_S = 1.0


def main(arguments: Sequence[str]) -> int:
    """Run one command and return the exit code."""
    if arguments[:1] == ["kubectl"]:  # every argument is kubectl's own, --help too
        return _kubectl(arguments[1:])
    if arguments[:1] in (["image"], ["push"]):
        from lab import images  # not in each start of a cluster

        return images.main(arguments)
    parser = argparse.ArgumentParser(prog="python -m lab", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start a control plane, stay until Ctrl-C or the parent ends")
    up.add_argument(
        "--kubeconfig",
        type=Path,
        default=DEFAULT_KUBECONFIG,
        help="where to write the administrator's kubeconfig; removed at the end (default: %(default)s)",
    )
    commands.add_parser("build", help="build the programs if they are not built, and print their folder")
    commands.add_parser("kubectl", help="run kubectl against KUBECONFIG, or else the control plane of `up`")
    commands.add_parser("image", help="build the operator's image (--help)")
    commands.add_parser("push", help="send the operator's image to a registry (--help)")
    options = parser.parse_args(arguments)
    try:
        if options.command == "build":
            print(build.build())
            return 0
        return _up(options.kubeconfig.absolute())
    except (build.BuildError, LabError, OSError) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1


def _up(kubeconfig: Path) -> int:
    stop_signals = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    parent = os.getppid()
    build.build()  # long, and to be interrupted as usual
    signal.pthread_sigmask(signal.SIG_BLOCK, stop_signals)  # from here on they are taken by sigwait
    with ControlPlane() as cluster:
        kubeconfig.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(cluster.kubeconfig_path, kubeconfig)
        try:
            print(
                f"Kubernetes is ready at {cluster.server}; state and logs are in {cluster.directory}.\n"
                "It has an API server, etcd and the controller-manager: pods are made, and stay Pending.\n"
                "\n"
                "In another terminal:\n"
                f"  export KUBECONFIG={kubeconfig}\n"
                "  ./dev install            # the CRD\n"
                "  ./dev run                # the operator\n"
                "  ./dev kubectl get mc     # or your own kubectl\n"
                "\n"
                "Ctrl-C ends it and removes everything.",
                flush=True,
            )
            # `just` stands between a person and this process: killed, it takes nothing along.
            while signal.sigtimedwait(stop_signals, _PARENT_CHECK_S) is None and os.getppid() == parent:
                pass
        finally:
            kubeconfig.unlink(missing_ok=True)
    print("lab: stopped")
    return 0


def _kubectl(arguments: Sequence[str]) -> int:
    """Become kubectl; returns only where there is none."""
    try:
        program = build.kubectl_path()
    except build.BuildError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    environment = dict(os.environ)
    if "KUBECONFIG" not in environment and DEFAULT_KUBECONFIG.exists():
        environment["KUBECONFIG"] = str(DEFAULT_KUBECONFIG)
    os.execve(program, ["kubectl", *arguments], environment)
    raise AssertionError("execve does not return")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
