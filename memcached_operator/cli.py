"""The entry point: arguments in, an exit code out.

Each command imports what it needs when it is chosen, so that `--help` is quick and `crd` loads no HTTP client.
"""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memcached_operator.about import PROGRAM
from memcached_operator.api.names import GROUP, GROUP_VARIABLE
from operator_runtime.process.flags import (
    Flags,
    Parser,
    UsageError,
    add_settings,
    answered,
    asks_for_help,
    did_you_mean,
    parse,
    printed,
)

if TYPE_CHECKING:
    from memcached_operator.demo.demo_command import DemoOptions
    from memcached_operator.settings import Settings


@dataclass(frozen=True, slots=True)
class Command:
    """Command that a word on the command line runs."""

    help: str
    run: Callable[[Flags], int]
    add_flags: Callable[[Parser], None] = lambda _parser: None
    description: str = ""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code; flags without a command mean `run`."""
    return answered(PROGRAM.name, lambda: _main(list(sys.argv[1:] if argv is None else argv)))


def _main(words: list[str]) -> int:
    if wrong := group_error():
        raise UsageError(wrong)
    name, arguments = _command_of(words)
    parser = parser_of(name)
    return printed(parser.format_help()) if asks_for_help(arguments) else COMMANDS[name].run(parse(parser, arguments))


def _command_of(arguments: list[str]) -> tuple[str, list[str]]:
    first = arguments[0] if arguments else ""
    if first in COMMANDS:
        return first, arguments[1:]
    if first == "--version":
        return "version", arguments[1:]
    if not first or first.startswith("-"):
        return "run", arguments
    raise UsageError(f"unknown command {first!r}{did_you_mean(first, COMMANDS)}")


def group_error(group: str = GROUP) -> str | None:
    """Report what is wrong with a group, in one line that names the variable and the remedy.

    A CustomResourceDefinition's group is a domain with a dot in it: apiextensions, `validation.go`.
    """
    from operator_runtime.client.dns_names import is_subdomain

    if "." in group and is_subdomain(group):
        return None
    return f"{GROUP_VARIABLE}: {group!r} is not allowed, it must be a domain with a dot in it, such as cache.acme.io"


def parser_of(name: str) -> Parser:
    command, prog = COMMANDS[name], f"{PROGRAM.name} {name}"
    parser = Parser(prog=prog, usage=f"{prog} [flags]", description=command.description or command.help)
    command.add_flags(parser)
    return parser


def _run(flags: Flags) -> int:
    settings = _settings(flags)

    from memcached_operator import operator
    from memcached_operator.settings_schema import SCHEMA
    from operator_runtime.process.command import operate

    return operate(PROGRAM, SCHEMA, settings, operator.run, own_packages=("memcached_operator",))


def _settings(flags: Flags) -> "Settings":
    from memcached_operator.settings_schema import SCHEMA

    return SCHEMA.load(flags, os.environ)


def _add_run_flags(parser: Parser) -> None:
    from memcached_operator.settings_schema import SCHEMA
    from operator_runtime.process.command import VARIABLES_IN_WORDS

    width = max(map(len, COMMANDS))
    commands = "\n".join(f"  {name:<{width}}  {command.help}" for name, command in COMMANDS.items())
    parser.usage = f"{PROGRAM.name} [run] [flags]\n       {PROGRAM.name} COMMAND"
    parser.description = f"{PROGRAM.description}\n{VARIABLES_IN_WORDS}\n\ncommands:\n{commands}"
    add_settings(parser, SCHEMA.options)


def _demo(flags: Flags) -> int:
    options = demo_options(flags)

    from memcached_operator.demo.demo_command import run

    return run(options)


def demo_options(flags: Flags) -> "DemoOptions":
    from pathlib import Path

    try:
        from memcached_operator.demo.demo_command import DemoOptions
    except ModuleNotFoundError as error:
        # The operator's image is made without it.
        remedy = "in a checkout it is `./dev demo`, elsewhere `pip install 'memcached-operator[demo]'`"
        raise UsageError(f"the demo is not available, as {error.name} is not installed: {remedy}") from None

    return DemoOptions(
        once="once" in flags,
        plain="plain" in flags,
        memcached="no_memcached" not in flags,
        picture=Path(flags["picture"]) if flags.get("picture") else None,
    )


def _add_demo_flags(parser: Parser) -> None:
    parser.add_argument("--once", action="store_true", help="exit after the last step instead of waiting for Ctrl-C")
    parser.add_argument("--plain", action="store_true", help="print one line per step instead of the live view")
    parser.add_argument("--no-memcached", action="store_true", help="simulate the pods even if memcached is installed")
    parser.add_argument("--picture", metavar="PATH", help="draw the live view as an SVG")


def _crd(_flags: Flags) -> int:
    from memcached_operator.api.crd import memcached_crd_yaml

    return printed(memcached_crd_yaml())


# The settings that a check depends on. It takes all of them, so that the arguments of a Deployment can be given as
# they are, and shows these.
_CHECKED = frozenset(
    {
        *("kubeconfig", "context", "service_account_dir", "request_timeout_s", "watch_namespaces", "operator_name"),
        *("leader_elect", "leader_elect_mode", "leader_elect_id", "leader_elect_namespace"),
        *("metrics_bind_address", "metrics_secure", "server_credentials", "operator_image"),
    }
)


def _check(flags: Flags) -> int:
    own = ("as_service_account", "output")
    output = flags.get("output", "text")
    settings = _settings({name: value for name, value in flags.items() if name not in own})
    if output not in ("text", "json"):
        raise UsageError(f"--output: {output!r} is not allowed, it must be text or json")

    from memcached_operator.check.check_command import CheckOptions, run
    from operator_runtime.cache.store import ObjectKey

    key = ObjectKey(*_account(flags["as_service_account"])) if "as_service_account" in flags else None
    return run(CheckOptions(settings, key, output))


def _account(value: str) -> tuple[str, str]:
    """Namespace and name. They become parts of paths, where other characters would make another request of them."""
    from operator_runtime.client.dns_names import LABEL_IN_WORDS, SUBDOMAIN_IN_WORDS, is_label, is_subdomain

    refused = f"--as-service-account: {value!r} is not allowed, it must be NAMESPACE/NAME"
    namespace, slash, name = value.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise UsageError(f"{refused} such as memcached-operator-system/memcached-operator")
    if not is_label(namespace):
        raise UsageError(f"{refused}, and the namespace {LABEL_IN_WORDS}")
    if not is_subdomain(name):
        raise UsageError(f"{refused}, and the name {SUBDOMAIN_IN_WORDS}")
    return namespace, name


def _add_check_flags(parser: Parser) -> None:
    from memcached_operator.settings_schema import SCHEMA

    group = parser.add_argument_group("What is checked")
    group.add_argument(
        "--as-service-account",
        metavar="NAMESPACE/NAME",
        help="Check the permissions of the ServiceAccount that the operator has or will have, not those of the "
        "current user, and whether that user may install what is missing.",
    )
    group.add_argument("-o", "--output", metavar="text|json", help="Output: for people, or for programs.")
    add_settings(parser, SCHEMA.options, shown=_CHECKED)


# The settings that decide what a Memcached becomes, and what a change of it costs.
_RENDERED = frozenset({"memcached_image", "memcached_user_id", "server_credentials", "operator_image"})


def _render(flags: Flags) -> int:
    files = tuple(flags.get("filename", ()))
    if not all(files) or not files:
        raise UsageError("render needs a file: -f FILE, or -f - for standard input")
    settings = _settings({name: value for name, value in flags.items() if name in _RENDERED})

    from memcached_operator.render import render_command
    from memcached_operator.render.rendering import RenderOptions
    from operator_runtime.client.dns_names import LABEL_IN_WORDS, is_label

    namespace = flags.get("namespace", "default")
    if not is_label(namespace):
        raise UsageError(f"--namespace: {namespace!r} is not allowed, it must be {LABEL_IN_WORDS}")
    options = RenderOptions(files, namespace, settings)
    if "diff" not in flags:
        return render_command.run(options)
    old = flags["diff"]
    if not old or (old == "-" and "-" in files):
        raise UsageError("--diff needs another file to compare with: --diff OLD, or --diff - for standard input")
    return render_command.run_diff(old, options)


def _add_render_flags(parser: Parser) -> None:
    from memcached_operator.settings_schema import SCHEMA

    parser.add_argument(
        *("-f", "--filename"),
        metavar="FILE",
        action="append",
        help="YAML or JSON, one document or several, or a list as kubectl get -o yaml prints it; - for standard input. "
        "May be repeated.",
    )
    parser.add_argument(
        *("-n", "--namespace"),
        metavar="NAMESPACE",
        help="Namespace of a Memcached that does not name one (default: default).",
    )
    parser.add_argument(
        "--diff",
        metavar="OLD",
        help="Print what changes for each Memcached since OLD, by namespace and name, what that costs its servers, "
        "and how its objects differ. OLD is such a file, too, or the output of kubectl get; - for standard input.",
    )
    add_settings(parser, [option for option in SCHEMA.options if option.name in _RENDERED])


def _discovery(flags: Flags) -> int:
    from pathlib import Path

    # It speaks no TLS, of which asyncio can do without: 3 MiB in each pod.
    sys.modules["ssl"] = None  # type: ignore[assignment]
    from memcached_operator.discovery.endpoint import EndpointOptions, run

    port = flags.get("port", "11211")
    if not port.isdecimal() or int(port) > 65_535:
        raise UsageError(f"--port: {port!r} is not allowed, it must be a number from 0 to 65535")
    if not flags.get("filename"):
        raise UsageError("discovery needs the file with the list: -f FILE")
    return run(EndpointOptions(Path(flags["filename"]), int(port)))


def _add_discovery_flags(parser: Parser) -> None:
    parser.add_argument(
        *("-f", "--filename"), metavar="FILE", help="The list of servers: its version, and below HOST|IP|PORT of each."
    )
    parser.add_argument("--port", metavar="PORT", help="Port that clients connect to (default: 11211).")


def _version(_flags: Flags) -> int:
    return printed(f"{PROGRAM.name} {PROGRAM.version}\n")


COMMANDS: dict[str, Command] = {
    "run": Command("run the operator; the default command", _run, _add_run_flags),
    "demo": Command(
        "show the operator at work without a cluster (needs the extra `demo`)",
        _demo,
        _add_demo_flags,
        "Shows the operator at work without a cluster: a simulated Kubernetes API, the operator, and a\n"
        "script of what a team does and what goes wrong. Without a terminal, or with --plain, it prints one\n"
        "line per step, and exits with code 0 if every step succeeded.",
    ),
    "check": Command(
        "check whether the operator can work on a cluster, and what is missing",
        _check,
        _add_check_flags,
        "Checks whether the operator can work on a cluster, before and after it is installed there: the\n"
        "API server and its version, the CRD, namespaces, and each permission that the operator needs.\n"
        "Prints the remedy for what is missing. Changes nothing. Exit code: 0 if all is well, 1 if not.\n\n"
        "All flags and variables of run are accepted, so that the operator's own can be passed unchanged.\n"
        "Those that make a difference here are listed.",
    ),
    "render": Command(
        "print the objects that the operator would create for a Memcached, without a cluster",
        _render,
        _add_render_flags,
        "Prints the objects that the operator would create for each Memcached in a file, as YAML;\n"
        "needs no cluster. Invalid Memcacheds are reported in the operator's words. Exit code: 0 if\n"
        "there were objects for each, 1 if not. With --diff: 0 if nothing changes, 1 if something\n"
        "does, 2 if not all could be compared.",
    ),
    "discovery": Command(
        "answer clients that discover the servers of a Memcached; run by its pods",
        _discovery,
        _add_discovery_flags,
        "Answers `config get cluster` with the list of servers in a file, which it follows. The pods of\n"
        "spec.discovery.autoDiscovery run it. Ends with SIGTERM.",
    ),
    "crd": Command("print the CustomResourceDefinition of Memcached", _crd),
    "version": Command("print the version", _version),
}
