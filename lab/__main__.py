"""The lab for people: ``python -m lab up`` starts a control plane, ``node`` adds a node, ``kubectl`` talks to it."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from lab import ROOT
from lab.cache import BuildError
from lab.control_plane import ControlPlane
from lab.foreground import print_last_line, run_until_interrupted
from lab.kubectl import LabError
from lab.programs import kubernetes

# 128 and the number of SIGINT, as shells count.
INTERRUPTED = 130
DEFAULT_KUBECONFIG = ROOT / ".cache" / "lab" / "kubeconfig"


def main(arguments: Sequence[str]) -> int:
    """Run one command and return the exit code."""
    if arguments[:1] == ["kubectl"]:  # every argument is kubectl's own, --help too
        return _kubectl(arguments[1:])
    if arguments[:1] in (["image"], ["push"]):
        from lab.image import images  # not in each start of a cluster

        return images.main(arguments)
    if arguments[:1] == ["example-image"]:
        from lab.image import example

        return example.main(arguments[1:])
    if arguments[:1] == ["demo"]:
        from lab import demo

        return demo.main(arguments[1:])
    parser = argparse.ArgumentParser(prog="python -m lab", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start a control plane, stay until Ctrl-C or the parent ends")
    node = commands.add_parser("node", help="start a control plane with a real node, and stay likewise; takes root")
    node.add_argument("--bare", action="store_true", help="without the images of the operator and of memcached")
    load = commands.add_parser("load", help="put images on the node of `node`")
    load.add_argument(
        "archives", nargs="*", type=Path, metavar="FILE", help="default: the operator's, of this checkout"
    )
    for command, default in ((up, DEFAULT_KUBECONFIG), (node, DEFAULT_KUBECONFIG), (load, None)):
        first = "KUBECONFIG where a node of `node` has it, else " if default is None else ""
        command.add_argument(
            "--kubeconfig",
            type=Path,
            default=default,
            help="where the administrator's kubeconfig is while the cluster is up"
            f" (default: {first}{DEFAULT_KUBECONFIG})",
        )
    commands.add_parser("kubectl", help="run kubectl against KUBECONFIG, or else the cluster of `up` or `node`")
    commands.add_parser("image", help="build the operator's image (--help)")
    commands.add_parser("push", help="send the operator's image to a registry (--help)")
    commands.add_parser("example-image", help="build the image of examples/my_own_shell (--help)")
    options = parser.parse_args(arguments)
    try:
        if options.command == "up":
            return _up(options.kubeconfig.absolute())
        from lab.node import node_command as on_node  # images and all: not in each start of a control plane

        if options.command == "node":
            return on_node.up(options.kubeconfig.absolute(), bare=options.bare)
        kubeconfig = options.kubeconfig or on_node.kubeconfig_of_node(DEFAULT_KUBECONFIG)
        return on_node.load(kubeconfig.absolute(), options.archives)
    except KeyboardInterrupt:  # during a build: what is up takes a Ctrl-C for a good end
        print_last_line("lab: interrupted; what was built so far is kept")
        return INTERRUPTED
    except (BuildError, LabError, OSError) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1


def _up(kubeconfig: Path) -> int:
    kubernetes.build()  # long, and to be interrupted as usual
    return run_until_interrupted(
        ControlPlane,
        kubeconfig,
        lambda cluster: (
            f"Kubernetes is ready at {cluster.server}.\n"
            "It has an API server, etcd and the controller-manager: pods are made, and stay\n"
            f"Pending. State and logs are in {cluster.directory}.\n"
            "\n"
            "In another terminal:\n"
            f"  export KUBECONFIG={kubeconfig}\n"
            "  ./dev install            # the CRD\n"
            "  ./dev run                # the operator\n"
            "  ./dev kubectl get memcached     # or your own kubectl\n"
            "\n"
            "Ctrl-C ends it and removes everything."
        ),
    )


def _kubectl(arguments: Sequence[str]) -> int:
    """Become kubectl; returns only where there is none."""
    try:
        program = kubernetes.kubectl_path()
    except BuildError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    environment = dict(os.environ)
    if "KUBECONFIG" not in environment and DEFAULT_KUBECONFIG.exists():
        environment["KUBECONFIG"] = str(DEFAULT_KUBECONFIG)
    os.execve(program, ["kubectl", *arguments], environment)
    raise AssertionError("execve does not return")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
