"""Pure: extra arguments of memcached, judged as it would read them.

memcached leaves the reading to getopt_long: letters stand in clusters (-vM), a value is attached or the next word, a
long flag may be cut as long as one alone begins so, and `-o` takes a list of options, each with or without a value, any
number of times. What comes last holds, so that a flag among these would silently undo what a field of the specification
says, and a word that memcached does not take makes each server end as it starts.

Source of the rules: what memcached 1.6.45 prints and does, tried with the program itself; getopt_long(3), getsubopt(3).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from memcached_operator.api.names import shown
from memcached_operator.api.sizing import LEAST_ITEM_BYTES, SIZE_CLASSES

_Check = Callable[[str], str | None]
"""What a value must be, in words, where it is not that."""

# memcached's own, where no option says otherwise: the largest chunk of an item, shares of the lists of items, and the
# bytes of the smallest item and between two sizes of them.
CHUNK_KIB: Final = 512
_PAGE_KIB: Final = 1024
_HOT, _WARM, _HOT_AND_WARM = 20, 40, 80
_ITEM, _ALIGNED, _FACTOR = 48, 8, 1.25
# The last is for the largest chunk (MAX_NUMBER_OF_SLAB_CLASSES).
_MOST_CLASSES = 63
# It wants more entries in its hash table than locks for them (memcached_thread_init): the least power, by threads.
_HASHPOWERS: Final = ((2, 11), (3, 12), (4, 13), (10, 14), (20, 15))
_INT: Final = 2**31 - 1
_UNSIGNED: Final = 2**32 - 1


def _whole(least: int, most: int = _INT) -> _Check:
    def check(value: str) -> str | None:
        good = re.fullmatch("[0-9]{1,10}", value) and least <= int(value) <= most
        return None if good else f"a whole number from {least} to {most}"

    return check


def _number(above: float, most: float | None = None) -> _Check:
    def check(value: str) -> str | None:
        good = re.fullmatch(r"[0-9]{1,10}(\.[0-9]{1,10})?", value) and above < float(value) <= (most or float("inf"))
        limits = f"above {above:g}" + (f" and at most {most:g}" if most else "")
        return None if good else f"a number {limits}"

    return check


def _one_of(*words: str) -> _Check:
    return lambda value: None if value in words else " or ".join(words)


def _chunk(value: str) -> str | None:
    good = re.fullmatch("[0-9]{1,4}", value) and int(value) in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, _PAGE_KIB)
    return None if good else f"a power of two of KiB from 1 to {_PAGE_KIB}"


def _sizes(value: str) -> str | None:
    if re.fullmatch("[0-9]{1,9}(-[0-9]{1,9}){0,61}", value):
        sizes = [int(size) for size in value.split("-")]
        if all(after > before + _ALIGNED for before, after in pairwise(sizes)):
            return None
    return f"at most 62 numbers of bytes such as 100-200-400, each more than {_ALIGNED} above the one before"


def _delimiter(value: str) -> str | None:
    return None if len(value) == 1 and value.isascii() and value.isprintable() else "one character"


@dataclass(frozen=True, slots=True)
class _Flag:
    """A flag of memcached.

    Attributes:
        long: its long name.
        valued: whether it takes a value.
        check: judges the value of one that may be given.
        refused: why it may not be given, and what to do instead.
    """

    long: str
    valued: bool = False
    check: _Check | None = None
    refused: str = ""


def _field(name: str) -> str:
    return f"it would undo spec.{name}; set that field instead"


_REACHED = "servers are reached over TCP on port 11211, as the Service, the list and the probe say; omit it"
_TLS = "spec.tls says how servers speak TLS; set that field instead"
_PASSWORDS = "spec.auth says which passwords servers ask for; set that field instead"
_SASL = "it requires authentication for the binary protocol only; omit it, and set spec.auth or spec.tls.clientAuth"
_FOREGROUND = "a server that leaves the foreground ends its container; omit it"
_ENDS = "memcached prints a text and exits; omit it"
_NO_VOLUME = "a server has no volume to write to; omit it"
_DISK = "spec.extstore says how a server uses a disk; set that field instead"

_FLAGS: Final[Mapping[str, _Flag]] = {
    "a": _Flag("unix-mask", True, refused=_REACHED),
    "A": _Flag("enable-shutdown", refused="any client could stop a server; omit it"),
    "Z": _Flag("enable-ssl", refused=_TLS),
    "p": _Flag("port", True, refused=_REACHED),
    "s": _Flag("unix-socket", True, refused=_REACHED),
    "U": _Flag("udp-port", True, refused=_REACHED),
    "m": _Flag("memory-limit", True, refused=_field("memory")),
    "M": _Flag("disable-evictions"),
    "c": _Flag("conn-limit", True, refused=_field("maxConnections")),
    "k": _Flag("lock-memory", refused="a server is not allowed to lock memory; omit it"),
    "h": _Flag("help", refused=_ENDS),
    "i": _Flag("license", refused=_ENDS),
    "V": _Flag("version", refused=_ENDS),
    "r": _Flag("enable-coredumps"),
    "v": _Flag("verbose"),
    "d": _Flag("daemon", refused=_FOREGROUND),
    "l": _Flag("listen", True, refused=_REACHED),
    "u": _Flag("user", True, refused="set spec.podTemplate.spec.securityContext instead"),
    "P": _Flag("pidfile", True, refused=_NO_VOLUME),
    "f": _Flag("slab-growth-factor", True, _number(1)),
    "n": _Flag("slab-min-size", True, _whole(1)),
    "t": _Flag("threads", True, refused=_field("threads")),
    "D": _Flag("", True, _delimiter),
    "L": _Flag("enable-largepages", refused="spec.memory could not be changed while a server runs; omit it"),
    "R": _Flag("max-reqs-per-event", True, _whole(1)),
    "C": _Flag("disable-cas"),
    "b": _Flag("listen-backlog", True, _whole(0)),
    # By the binary protocol alone the operator could query no server.
    "B": _Flag("protocol", True, _one_of("auto", "ascii")),
    "I": _Flag("max-item-size", True, refused=_field("maxItemSize")),
    "S": _Flag("enable-sasl", refused=_SASL),
    "F": _Flag("disable-flush-all"),
    "X": _Flag("disable-dumping"),
    "W": _Flag("disable-watch"),
    "Y": _Flag("auth-file", True, refused=_PASSWORDS),
    "e": _Flag("memory-file", True, refused="set spec.warmRestart instead"),
    "o": _Flag("extended", True),
    "N": _Flag("napi-ids", True, _whole(1)),
}
_LONG: Final = {flag.long: letter for letter, flag in _FLAGS.items() if flag.long}

_OPTIONS: Final[Mapping[str, _Check | None]] = {
    **dict.fromkeys(
        (
            *("maxconns_fast", "no_maxconns_fast", "no_hashexpand", "modern", "no_modern", "track_sizes"),
            *("slab_reassign", "no_slab_reassign", "no_slab_automove", "no_chunked_items"),
            *("lru_crawler", "no_lru_crawler", "lru_maintainer", "no_lru_maintainer"),
            *("inline_ascii_resp", "no_inline_ascii_resp", "drop_privileges", "no_drop_privileges"),
        )
    ),
    "hashpower": _whole(12, 32),
    "slab_automove": _whole(0, 2),
    "slab_automove_ratio": _number(0, 1),
    "slab_automove_window": _whole(3, 1800),
    "slab_automove_freeratio": _number(0, 1),
    "tail_repair_time": _whole(10),
    "hash_algorithm": _one_of("murmur3", "jenkins", "xxh3"),
    "lru_crawler_sleep": _whole(0, 1_000_000),
    "lru_crawler_tocrawl": _whole(0, _UNSIGNED),
    "hot_lru_pct": _whole(1, _HOT_AND_WARM - 1),
    "warm_lru_pct": _whole(1, _HOT_AND_WARM - 1),
    "hot_max_factor": _number(0),
    "warm_max_factor": _number(0),
    "temporary_ttl": _whole(0),
    "idle_timeout": _whole(0),
    "watcher_logbuf_size": _whole(0, _UNSIGNED // 1024),
    "worker_logbuf_size": _whole(0, _UNSIGNED // 1024),
    "slab_sizes": _sizes,
    "slab_chunk_max": _chunk,
    "read_buf_mem_limit": _whole(0, _UNSIGNED // 2**20),
}
"""The options of -o, each with what its value must be; None where it takes none."""

_REFUSED_OPTIONS: Final = {
    "ssl_": _TLS,
    "proxy_": "spec.handover says whether a server runs memcached's proxy; omit it",
    "ext_": _DISK,
}


@dataclass(slots=True)
class Arguments:
    """Meaning of extra arguments.

    Attributes:
        complaints: of each wrong one the field, what it must be, and what it is; empty where all are right.
        chunk_kib: size of the largest chunk of an item, by the options.
        chunk_given: whether an option gives that number.
        hashpower: the power of two of entries with which the hash table begins; 0 for memcached's own.
        protocol: the value of -B, "" without it.
        against_handover: those with which servers cannot hand over: without CAS, or without a dump of their keys.
        evicts: a full server evicts items instead of refusing new ones.
    """

    complaints: list[str] = field(default_factory=list)
    chunk_kib: int = CHUNK_KIB
    chunk_given: bool = False
    hashpower: int = 0
    protocol: str = ""
    against_handover: set[str] = field(default_factory=set)
    evicts: bool = True
    _shares: dict[str, int] = field(default_factory=lambda: {"hot_lru_pct": _HOT, "warm_lru_pct": _WARM})
    _maintained: bool = True
    _temporary: bool = False
    _smallest: int = _ITEM
    _factor: float = _FACTOR
    _sizes: str = ""

    def item_step_kib(self, item_size_kib: int) -> int:
        """Return what the size of the largest item must be a multiple of, for an item of that size."""
        return self.chunk_kib if self.chunk_given or item_size_kib <= _PAGE_KIB else CHUNK_KIB

    @property
    def table_mib(self) -> int:
        """MiB of a hash table that begins with more entries than memcached's own; 0 without an option."""
        return -(-(8 << self.hashpower) // 2**20) if self.hashpower else 0

    @property
    def size_classes(self) -> int:
        """Largest number of sizes of chunks."""
        if self._sizes:
            return self._sizes.count("-") + 2
        return _MOST_CLASSES if self._factor < _FACTOR else SIZE_CLASSES

    @property
    def least_item_bytes(self) -> int:
        """The smallest of them; at least what an item has of its own, and a byte."""
        if self._sizes:
            return max(int(self._sizes.split("-")[0]), _ITEM + _ALIGNED)
        return LEAST_ITEM_BYTES - _ITEM + -(-self._smallest // _ALIGNED) * _ALIGNED

    def note(self, option: str, value: str) -> None:
        """Keep what a good option or flag changes in what others must be."""
        match option:
            case "slab_chunk_max":
                self.chunk_kib, self.chunk_given = int(value), True
            case "no_chunked_items":
                self.chunk_kib = _PAGE_KIB
            case "-n":
                self._smallest = int(value)
            case "-B":
                self.protocol = value
            case "-M":
                self.evicts = False
            case "-C" | "-X":
                self.against_handover.add(option)
            case "-f":
                self._factor = float(value)
            case "slab_sizes":
                self._sizes = value
            case "hashpower":
                self.hashpower = int(value)
            case "hot_lru_pct" | "warm_lru_pct":
                self._shares[option] = int(value)
            case "temporary_ttl":
                self._temporary = True
            case "lru_crawler":
                self.against_handover -= {"no_lru_crawler", "no_modern"}
            case "no_lru_crawler":
                self.against_handover.add(option)
            case "lru_maintainer":
                self._maintained = True
            case "no_lru_maintainer":
                self._maintained = False
            case "no_modern":
                self._maintained = False
                self.against_handover.add(option)
                if not self.chunk_given:
                    self.chunk_kib = _PAGE_KIB

    def contradictions(self) -> Iterator[str]:
        """Options that are right by themselves and make memcached end together."""
        hot, warm = self._shares.values()
        if hot + warm > _HOT_AND_WARM:
            yield (
                f"hot_lru_pct and warm_lru_pct must be at most {_HOT_AND_WARM} together ({_HOT} and {_WARM} if "
                f"omitted), got {hot} and {warm}"
            )
        sizes = self._sizes.split("-") if self._sizes else []
        if sizes and not self._smallest <= int(sizes[0]) <= int(sizes[-1]) <= self.chunk_kib * 1024:
            yield (
                f"slab_sizes must be from {self._smallest} (-n) to {self.chunk_kib * 1024} (slab_chunk_max), "
                f"got {shown(self._sizes)}"
            )
        if self._temporary and not self._maintained:
            yield "temporary_ttl must be omitted with no_lru_maintainer or no_modern"


def judge(arguments: Sequence[str], threads: int) -> Arguments:
    """Judge extra arguments, each a word of the command line.

    Args:
        threads: of the server; it takes no more NAPI ids than that.
    """
    found = Arguments()
    after_unknown = False
    for index, flag, value, value_index in _parsed(arguments):
        letter = flag[1:] if len(flag) == 2 else _LONG.get(flag[2:], "")
        if not (after_unknown and not flag):  # the value, it seems, of a flag that has been reported
            for complaint, wrong in _judged(flag, letter, value, threads, found):
                at, got = (index, arguments[index]) if wrong is None else (value_index, wrong)
                found.complaints.append(f"spec.extraArgs[{at}]: {complaint}, got {shown(got)}")
        after_unknown = letter not in _FLAGS
    if not found.complaints:
        found.complaints += (f"spec.extraArgs: {contradiction}" for contradiction in found.contradictions())
    return found


_Parsed = tuple[int, str, str | None, int]
"""Index of the word, the flag as it stands there or "" for a word that is none, its value, and where that stands."""


def _parsed(arguments: Sequence[str]) -> Iterator[_Parsed]:
    """The flags in `arguments` as getopt_long takes them apart; a long one by its whole name, where it has one.

    An unknown flag has no value; a known one has None where it takes or has none.
    """
    index = 0
    while index < len(arguments):
        word, at = arguments[index], index
        index += 1
        if word == "--":
            yield from ((rest, "", None, rest) for rest in range(index, len(arguments)))
            return
        if word.startswith("--"):
            name, equals, attached = word[2:].partition("=")
            name = _whole_name(name)
            value = attached if equals else None
            if name in _LONG and _FLAGS[_LONG[name]].valued and not equals and index < len(arguments):
                value, index = arguments[index], index + 1
            yield at, f"--{name}", value, index - 1
        elif word.startswith("-") and len(word) > 1:
            letters = word[1:]
            for place, letter in enumerate(letters):
                if letter not in _FLAGS or not _FLAGS[letter].valued:
                    yield at, f"-{letter}", None, at
                    continue
                value = letters[place + 1 :] or None
                if value is None and index < len(arguments):
                    value, index = arguments[index], index + 1
                yield at, f"-{letter}", value, index - 1
                break
        else:
            yield at, "", None, at


def _meant(name: str) -> list[str]:
    return sorted(long for long in _LONG if long.startswith(name))


def _whole_name(name: str) -> str:
    """The long flag that begins so, where it is one alone; else what was written."""
    meant = _meant(name)
    return meant[0] if len(meant) == 1 and name not in _LONG else name


_Complaint = tuple[str, str | None]
"""What is wrong, and what is: None for the word of the flag itself."""


def _judged(flag: str, letter: str, value: str | None, threads: int, found: Arguments) -> Iterator[_Complaint]:
    """Yield what is wrong with a flag and its value."""
    known = _FLAGS.get(letter)
    if not flag:
        yield "must be a flag or its value; memcached ignores other words", None
    elif known is None:
        yield _unknown(flag), None
    elif known.refused:
        yield f"must not contain {flag}: {known.refused}", None
    elif not known.valued:
        if value is not None:
            yield f"must be {flag} without a value", None
        found.note(f"-{letter}", "")
    elif value is None:
        yield f"must be followed by the value of {flag}", None
    elif value[:1].isspace():
        # Older releases take the space for a part of the value.
        yield f"must contain {flag} and its value as two words", None
    elif letter == "o":
        yield from _judged_options(value, threads, found)
    elif known.check and (desired := known.check(value)):
        yield f"must set {flag} to {desired}", value
    elif letter == "N" and int(value) > threads:
        yield f"must set {flag} to at most {threads}, the value of spec.threads", value
    else:
        found.note(f"-{letter}", value)


def _unknown(flag: str) -> str:
    if len(flag) > 2 and (meant := _meant(flag[2:])):
        return "must be one flag, written in full; so begin " + " and ".join(f"--{long}" for long in meant)
    return "must be a flag of memcached, as listed by memcached --help"


def _judged_options(text: str, threads: int, found: Arguments) -> Iterator[_Complaint]:
    """Yield what is wrong with the value of -o."""
    for option in text.split(","):
        name, equals, value = option.partition("=")
        refused = next((why for prefix, why in _REFUSED_OPTIONS.items() if name.startswith(prefix)), None)
        if refused:
            yield f"must not contain {name}: {refused}", option
        elif name not in _OPTIONS:
            yield "must contain options of memcached, as listed by memcached --help below -o", option
        elif (check := _OPTIONS[name]) is None:
            if equals:
                yield f"must contain {name} without a value", option
            else:
                found.note(name, "")
        elif desired := check(value):
            yield f"must set {name} to {desired}", option
        elif name == "hashpower" and int(value) < (
            least := next((power for most, power in _HASHPOWERS if threads <= most), 16)
        ):
            yield f"must set {name} to at least {least} with {threads} threads (spec.threads)", option
        else:
            found.note(name, value)
