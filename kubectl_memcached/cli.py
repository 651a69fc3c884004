"""The entry point: arguments in, an exit code out. What a command needs is imported when it is chosen."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from operator_runtime.process.flags import (
    DONE,
    Flags,
    Parser,
    UsageError,
    answered,
    asks_for_help,
    did_you_mean,
    parse,
    printed,
)

if TYPE_CHECKING:
    from kubectl_memcached.cluster import UserCluster
    from kubectl_memcached.objects import ShownMemcached
    from kubectl_memcached.words import CommandOutput

    _Work: TypeAlias = Callable[[UserCluster, ShownMemcached], Awaitable[CommandOutput]]

PROGRAM: Final = "kubectl memcached"
FAILED: Final = 1
_DURATION: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)?")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class PluginCommand(NamedTuple):
    """Command of the plugin.

    Attributes:
        words: the positional arguments that it takes.
        flags: names of `_FLAGS` that it takes, beside those of all.
    """

    help: str
    words: Sequence[str]
    flags: Sequence[str] = ()


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code: 1 where it failed, or not all servers answered."""
    from kubectl_memcached.words import PluginError

    try:
        return answered(PROGRAM, lambda: _main(list(sys.argv[1:] if argv is None else argv)))
    except PluginError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return FAILED


def _main(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        return printed(_help())
    if words[0] in ("version", "--version"):
        from memcached_operator import __version__

        return printed(f"kubectl-memcached {__version__}\n")
    name, *arguments = words
    if name not in COMMANDS:
        if name.startswith("-"):
            raise UsageError(f"{name}: flags follow the command")
        raise UsageError(f"unknown command {name!r}{did_you_mean(name, COMMANDS)}")
    parser = parser_for(name)
    if asks_for_help(arguments):
        return printed(parser.format_help())
    flags = parse(parser, arguments)
    for word in ("name", "namespace"):
        _check_name(word, flags.get(word, "default"))
    output = _chosen("--output", flags.get("output", "text"), ("text", "json"))

    import asyncio

    shown = asyncio.run(_shown(name, flags, _prepared(name, flags)))
    if output == "json":
        import json

        printed(json.dumps(shown.document, indent=2) + "\n")
    else:
        printed(shown.text)
    return DONE if shown.complete else FAILED


async def _shown(name: str, flags: Flags, work: _Work) -> CommandOutput:
    from kubectl_memcached.cluster import cluster_at

    place = {each: flags.get(each, "") for each in ("kubeconfig", "context", "namespace")}
    async with cluster_at(**place) as cluster:
        if name == "list":
            from kubectl_memcached.describe import list_memcacheds

            return await list_memcacheds(cluster, everywhere="all_namespaces" in flags)
        return await work(cluster, await cluster.memcached(flags["name"]))


def _prepared(name: str, flags: Flags) -> _Work:
    """The work of a command on one Memcached. What is wrong with its flags is told before anything is read."""
    from functools import partial

    key = os.fsencode(flags.get("key", ""))
    hashed = "hash_keys" in flags
    separator = os.fsencode(flags.get("separator", ":"))
    if not separator:
        raise UsageError("--separator must not be empty")
    match name:
        case "top":
            from kubectl_memcached.top import BY, TopOptions, top

            by = _chosen("--by", flags.get("by", BY[0]), BY)
            for_s = _seconds("--for", flags.get("for", "10s"))
            return partial(top, options=TopOptions(for_s, by, _count(flags), separator, hashed))
        case "big":
            from kubectl_memcached.big import BigOptions, big

            return partial(big, options=BigOptions(_count(flags), separator, hashed))
        case "flush":
            from kubectl_memcached.flush import FlushOptions, flush

            prefix = os.fsencode(flags["prefix"]) if "prefix" in flags else None
            pause_s = _seconds("--pause", flags.get("pause", "60s"))
            return partial(flush, options=FlushOptions(pause_s, prefix, "yes" in flags))
        case "get" | "delete":
            from kubectl_memcached import keys
            from kubectl_memcached.server import key_words

            key_words(key)
            return partial(keys.get if name == "get" else keys.delete, key=key)
        case "owner":
            from kubectl_memcached.hashing import CLIENTS
            from kubectl_memcached.keys import owner

            if "client" not in flags:
                raise UsageError(f"owner needs --client, one of: {', '.join(CLIENTS)}")
            client = _chosen("--client", flags["client"], CLIENTS)
            return partial(owner, key=key, client=client, by_address="addresses" in flags)
        case _:
            from kubectl_memcached.describe import describe_memcached, slabs

            return slabs if name == "slabs" else describe_memcached


def _check_name(word: str, value: str) -> None:
    from operator_runtime.client.dns_names import LABEL_IN_WORDS, is_label

    if not is_label(value):
        raise UsageError(f"{word}: {value!r} is not allowed, it must be {LABEL_IN_WORDS}")


def _chosen(flag: str, value: str, allowed: Collection[str]) -> str:
    if value not in allowed:
        raise UsageError(f"{flag}: {value!r} is not allowed, it must be one of: {', '.join(allowed)}")
    return value


def _seconds(flag: str, value: str) -> float:
    if (found := _DURATION.fullmatch(value)) is None or (seconds := float(found[1]) * _SECONDS[found[2] or "s"]) <= 0:
        raise UsageError(f"{flag}: {value!r} is not allowed, it must be a time such as 10s or 2m")
    return seconds


def _count(flags: Flags) -> int:
    value = flags.get("count", "20")
    if not re.fullmatch("[0-9]{1,4}", value) or not 0 < int(value) <= 1_000:
        raise UsageError(f"--count: {value!r} is not allowed, it must be a number from 1 to 1000")
    return int(value)


_FLAGS: Final = {
    "all_namespaces": (("-A", "--all-namespaces"), None, "those of all namespaces"),
    "for": (("--for",), "TIME", "for how long servers are watched (default: 10s)"),
    "by": (("--by",), "key|prefix|client", "what is counted (default: key)"),
    "count": (("--count",), "N", "how many are shown (default: 20)"),
    "separator": (("--separator",), "TEXT", "what ends the prefix of a key (default: a colon)"),
    "hash_keys": (("--hash-keys",), None, "show the SHA-256 of keys in their place"),
    "client": (("--client",), "CLIENT", "the library, or the program, that hashes"),
    "addresses": (("--addresses",), None, "the client has the addresses of pods, and not the names of the list"),
    "pause": (("--pause",), "TIME", "after each server (default: 60s)"),
    "prefix": (("--prefix",), "TEXT", "delete the keys alone that begin with it"),
    "yes": (("--yes",), None, "do not ask"),
    "namespace": (("-n", "--namespace"), "NAMESPACE", "of the Memcached (default: the context's)"),
    "context": (("--context",), "NAME", "of the kubeconfig (default: the current one)"),
    "kubeconfig": (("--kubeconfig",), "PATH", "the kubeconfig (default: KUBECONFIG, else ~/.kube/config)"),
    "output": (("-o", "--output"), "text|json", "for people, or for programs (default: text)"),
}
_OF_ALL: Final = ("namespace", "context", "kubeconfig", "output")
_NAME: Final = ("name",)
COMMANDS: Final = {
    "list": PluginCommand("list Memcacheds, and what of them is to be read", (), ("all_namespaces",)),
    "describe": PluginCommand("show a Memcached, its conditions and what its servers report", _NAME),
    "top": PluginCommand(
        "show which keys are requested most, for a while", _NAME, ("for", "by", "count", "separator", "hash_keys")
    ),
    "big": PluginCommand(
        "show the largest items, and what each prefix of keys takes", _NAME, ("count", "separator", "hash_keys")
    ),
    "slabs": PluginCommand("show the size classes of each server", _NAME),
    "owner": PluginCommand(
        "show which server has a key, by the hash of a client", ("name", "key"), ("client", "addresses")
    ),
    "get": PluginCommand("show the value of a key at each server", ("name", "key")),
    "delete": PluginCommand("delete a key at each server", ("name", "key")),
    "flush": PluginCommand("delete all items, server after server", _NAME, ("pause", "prefix", "yes")),
}


def _help() -> str:
    lines = _list({name: command.help for name, command in COMMANDS.items()})
    return (
        f"usage: {PROGRAM} COMMAND [NAME] [flags]\n\nLooks into the servers of a Memcached, by your own kubeconfig and"
        f" permissions.\n\ncommands:\n{lines}\n\n'{PROGRAM} COMMAND --help' lists its flags.\n"
    )


def _list(words: Mapping[str, str]) -> str:
    width = max(map(len, words))
    return "\n".join(f"  {word:<{width}}  {what}" for word, what in words.items())


def parser_for(name: str) -> Parser:
    """Make the parser of a command's arguments."""
    command = COMMANDS[name]
    words = " ".join(map(str.upper, command.words))
    prog = f"{PROGRAM} {name}"
    description = command.help[0].upper() + command.help[1:] + "."
    if name == "owner":
        from kubectl_memcached.hashing import CLIENTS

        description += "\n\nclients:\n" + _list({name: client.description for name, client in CLIENTS.items()})
    parser = Parser(prog=prog, usage=" ".join(filter(None, (prog, words, "[flags]"))), description=description)
    for word in command.words:
        parser.add_argument(word, metavar=word.upper())
    for each in (*command.flags, *_OF_ALL):
        names, metavar, text = _FLAGS[each]
        if metavar is None:
            parser.add_argument(*names, dest=each, action="store_true", help=text)
        else:
            parser.add_argument(*names, dest=each, metavar=metavar, help=text)
    return parser
