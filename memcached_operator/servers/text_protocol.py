"""memcached's text protocol (its protocol.txt), as far as it is used to query and set a server; and marks.

Marks are what servers that copy items from each other store in the place of items for some seconds:
`features/handover/handover.lua`, with these flags and this size.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeVar
from urllib.parse import unquote_to_bytes

from memcached_operator.servers.server_connection import (
    MAX_BYTES,
    SATURATED,
    TOO_MANY,
    Endpoint,
    ErrorKind,
    Failure,
    exchange,
)
from memcached_operator.servers.stats_answer import WHOLE, StatsAnswer

# The longest are paths of files and lists of ciphers among the settings.
MAX_LINE: Final = 2_048
_QUOTED_CHARACTERS: Final = 100
_END: Final = b"END\r\n"
_MIB: Final = 1 << 20
# With which `-Y` refuses all that comes before a login, and one that is wrong.
_UNAUTHENTICATED: Final = b"CLIENT_ERROR unauthenticated"
_WRONG_LOGIN: Final = b"CLIENT_ERROR authentication failure"
# By the hash table: an item that moves from one of the LRU lists to another would be missed. No client waits for it.
DUMP: Final = b"lru_crawler metadump hash\r\n"
# While the crawler is busy with something else, or the hash table grows.
DUMP_BUSY: Final = (b"BUSY", b"ERROR locked try again later")
_ITEM: Final = re.compile(rb"^key=(\S+) exp=(-?\d+) la=(\d+) cas=(\d+) fetch=\w+ cls=\d+ size=(\d+)", re.MULTILINE)

T = TypeVar("T")
Stats = Mapping[bytes, bytes]
"""Value by name, as `STAT name value` has them."""


MALFORMED = Failure(ErrorKind.MALFORMED, "the port does not speak memcached's text protocol")


def meta_key(key: bytes) -> tuple[bytes, bytes]:
    """A key as a meta command has it, and the flag that says how it is encoded, after a space.

    What ends a word is encoded and nothing else: a command takes 250 bytes, and a long key has more when encoded.
    """
    return (b64encode(key), b" b") if any(each in b" \n\0" for each in key) else (key, b"")


class DumpedItem(NamedTuple):
    """Item as a dump has it.

    Attributes:
        quoted: its key, as in a URL.
        expires_s: seconds since 1970, -1 for never.
        used_s: when it was last used, likewise, by the server's clock.
        size: bytes that it takes, with key and header.
    """

    quoted: bytes
    expires_s: int
    used_s: int
    cas: int
    size: int

    @property
    def key(self) -> bytes:
        return unquote_to_bytes(self.quoted)

    @property
    def words(self) -> tuple[bytes, bytes]:
        """The key; see `meta_key`."""
        return meta_key(self.key)


def read_items(block: bytes) -> tuple[list[DumpedItem], bytes]:
    """Parse whole lines of a dump.

    Returns:
        Its items, and the first line that is none, b"" where there is no other.
    """
    found = [DumpedItem(key, *map(int, numbers)) for key, *numbers in _ITEM.findall(block)]
    if len(found) == block.count(b"\n"):
        return found, b""
    return found, next((line for line in block.splitlines() if line != b"OK" and not _ITEM.match(line)), b"")


async def query(endpoint: Endpoint, timeout_s: float) -> tuple[StatsAnswer | Failure, bytes]:
    """Query a server by `stats` and `stats items`; the second result: see `exchange`."""
    request = endpoint.before + b"stats\r\nstats items\r\n"
    return await _logged_in(endpoint, request, answer_of, timeout_s)


async def memlimit(endpoint: Endpoint, mib: int, timeout_s: float, *, disk_from: int | None = None) -> Failure | None:
    """Give a server another limit of the memory for items, and read it back; None where it has it now.

    It is not written anywhere: a restarted server has the value of its command line.

    Args:
        mib: the limit, at least 8 (memcached's least).
        disk_from: bytes from which on it moves an item to its disk; None for one without a disk.
    """
    commands = [b"cache_memlimit %d\r\n" % mib]
    if disk_from is not None:
        commands.append(b"extstore item_size %d\r\n" % disk_from)

    def settings_after(received: bytes) -> Stats | Failure | None:
        return _settings_after(len(commands), received)

    settings, _ = await _logged_in(endpoint, b"".join(commands) + b"stats settings\r\n", settings_after, timeout_s)
    if isinstance(settings, Failure):
        return settings
    due = {b"maxbytes": (mib * _MIB, f"cache_memlimit {mib}")}
    if disk_from is not None:
        due[b"ext_item_size"] = (disk_from, f"extstore item_size {disk_from}")
    for name, (number, command) in due.items():
        if not WHOLE.fullmatch(has := settings.get(name, b"")):
            return MALFORMED
        if int(has) != number:
            return Failure(ErrorKind.REFUSED, f"its {name.decode()} is {int(has)} after {command}")
    return None


async def _logged_in(
    endpoint: Endpoint, request: bytes, read: Callable[[bytes], T | Failure | None], timeout_s: float
) -> tuple[T | Failure, bytes]:
    """An exchange after a login, if there is one: it looks like a `set`, whose key means nothing."""
    if endpoint.login is None:
        return await exchange(endpoint, request, read, timeout_s)
    user = endpoint.login.user
    login = f"{user} {endpoint.login.password}".encode()

    def after_login(received: bytes) -> T | Failure | None:
        first = first_line(received)
        if first is None or isinstance(first, Failure):
            return first
        if first == b"STORED":
            rest = received[len(first) + 2 :]
            return read(rest) if rest else None
        # Which of the two depends on whether more came with the login.
        if first in (_WRONG_LOGIN, _UNAUTHENTICATED):
            return Failure(ErrorKind.DENIED, f"it refuses the login of {user}")
        return _complaint(first)

    return await exchange(
        endpoint, b"set login 0 0 %d\r\n%b\r\n%b" % (len(login), login, request), after_login, timeout_s
    )


def first_line(received: bytes) -> bytes | Failure | None:
    """The first line of a response; None while it is not whole."""
    line, whole, _ = received.partition(b"\r\n")
    if not whole:
        return MALFORMED if len(line) > MAX_LINE else None
    return line


def answer_of(received: bytes) -> StatsAnswer | Failure | None:
    """Parse the answers to `stats`, and to `stats items` if there are items; None while they are not whole."""
    found = two_stats_of(received)
    if found is None or isinstance(found, Failure):
        return found
    stats, items = found
    if isinstance(items, Failure):
        return StatsAnswer.of(stats) if items.kind is ErrorKind.REFUSED else items
    if items is None:
        return MALFORMED if len(received) > MAX_BYTES else None
    return StatsAnswer.of(stats, items)


def two_stats_of(received: bytes) -> tuple[Stats, Stats | Failure | None] | Failure | None:
    """The lines of `stats`, and what came by now of other statistics after them; None while those are not whole."""
    end = received.find(b"\r\n" + _END) + 2 if not received.startswith(_END) else 0
    if end == 1:  # there is none
        found = stats_of(received)
        return found if isinstance(found, Failure) else None
    stats = stats_of(received[: end + len(_END)])
    return stats if stats is None or isinstance(stats, Failure) else (stats, stats_of(received[end + len(_END) :]))


def stats_of(received: bytes) -> Stats | Failure | None:
    """The lines of `stats` or of `stats settings`; None while they are not whole."""
    if received.endswith(_END) and received.startswith((b"STAT ", _END)):
        return _stats(received)
    first, whole, _ = received.partition(b"\r\n")
    if whole and not first.startswith(b"STAT "):
        return _complaint(first)
    if len(received) > MAX_BYTES or len(received) - (received.rfind(b"\n") + 1) > MAX_LINE:
        return MALFORMED
    return None


def _settings_after(commands: int, received: bytes) -> Stats | Failure | None:
    """The lines of `stats settings` after the answers to so many commands; None while they are not whole."""
    for _ in range(commands):
        first = first_line(received)
        if first is None or isinstance(first, Failure):
            return first
        if first != b"OK":
            return _complaint(first)
        received = received[len(first) + 2 :]
    return stats_of(received)


def _stats(received: bytes) -> Stats | Failure:
    lines = received[: -len(_END)].split(b"\r\n")[:-1]
    if not all(line.startswith(b"STAT ") for line in lines):
        return MALFORMED
    try:
        return dict([line[5:].split(b" ", 1) for line in lines])
    except ValueError:
        return MALFORMED


def _complaint(line: bytes) -> Failure:
    """Return the failure that a line shows where an answer is expected."""
    if line == TOO_MANY:
        return SATURATED
    if line == _UNAUTHENTICATED:
        return Failure(ErrorKind.DENIED, "it requires a login")
    word = line.partition(b" ")[0]
    # cache_memlimit alone has words of its own for errors.
    if word in (b"ERROR", b"CLIENT_ERROR", b"SERVER_ERROR") or word.startswith(b"MEMLIMIT_"):
        text = "".join(chr(each) if 32 <= each < 127 else "?" for each in line)
        return Failure(ErrorKind.REFUSED, f"it answers {text[:_QUOTED_CHARACTERS]}")
    return MALFORMED


# Placeholder, tomb, and absent.
MARK_FLAGS: Final = (4076008192, 4076008193, 4076008194)
MARK_BYTES: Final = 13


def is_mark(flags: int | None, size: int | None) -> bool:
    """Report whether an item with these flags, and a value of so many bytes, is a mark."""
    return size == MARK_BYTES and flags in MARK_FLAGS
