"""``./dev sizing``: the table of docs/sizing.md, measured on this machine."""

from __future__ import annotations

import argparse
import resource
import signal
import sys
from collections.abc import Sequence

from benchmarks.sizing.group import can_count
from benchmarks.sizing.points import Point, measured_mib, points
from benchmarks.sizing.server import ServerError
from lab.cache import BuildError

_HEAD = (
    "| `-m` MiB | `-c` | `-t` | `-I` KiB | what it does | takes, MiB | rule, MiB | rule / takes |\n"
    "|---|---|---|---|---|---|---|---|"
)


def row(point: Point, takes_mib: float) -> str:
    """A line of the table."""
    given, rule_mib = point.settings, point.settings.rule_mib
    numbers = (given.memory_mib, given.connections, given.threads, given.item_size_kib)
    cells = (*numbers, point, f"{takes_mib:.1f}", rule_mib, f"{rule_mib / takes_mib:.2f}")
    return f"| {' | '.join(map(str, cells))} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; returns the exit code: 1 if a server takes more than the rule says, or could not be measured."""
    parser = argparse.ArgumentParser(
        prog="./dev sizing", description="Measure what memory memcached takes, and hold the rule against it."
    )
    parser.add_argument(
        "--up-to-mib", type=int, default=1024, metavar="MIB", help="leave out servers with more memory (1024)"
    )
    options = parser.parse_args(arguments)
    # SIGTERM ends it as Ctrl-C does: through every `finally`, so that nothing stays behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    _raise_the_limit_of_files()
    if not can_count():
        _say("this user can make no cgroup: the table has resident sets, without what the kernel needs for connections")
    versions, exceeded = set(), False
    print(_HEAD, flush=True)
    try:
        for point in points():
            if point.settings.memory_mib <= options.up_to_mib:
                takes_mib, version = measured_mib(point)
                print(row(point, takes_mib), flush=True)
                versions.add(version)
                exceeded |= takes_mib > point.settings.rule_mib
    except (BuildError, ServerError, OSError) as error:
        _say(str(error))
        return 1
    except KeyboardInterrupt:
        _say("stopped")
        return 1
    _say(f"memcached {', '.join(sorted(versions))}")
    return int(exceeded)


def _say(message: str) -> None:
    print(f"sizing: {message}", file=sys.stderr, flush=True)


def _raise_the_limit_of_files() -> None:
    """Each connection is a file of this process."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


if __name__ == "__main__":
    sys.exit(main())
