"""Pure: extra arguments of memcached, judged as it would read them.

memcached leaves the reading to getopt_long: letters stand in clusters (-vM), a value is attached or the next word, a
long flag may be cut as long as one alone begins so, and `-o` takes a list of options, each with or without a value, any
number of times. What comes last holds, so that a flag among these would silently undo what a field of the specification
says, and a word that memcached does not take makes each server end as it starts.

`memcached_flags` has the flags. Source of the rules: what memcached 1.6.45 prints and does, tried with the program
itself; getopt_long(3), getsubopt(3).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from memcached_operator.api.complaints import shown
from memcached_operator.api.memcached_flags import (
    ALIGNED_BYTES,
    CHUNK_KIB,
    FACTOR,
    FLAGS,
    HOT,
    HOT_AND_WARM,
    ITEM_BYTES,
    LEAST_ITEM_BYTES,
    LONG_FLAGS,
    OPTIONS,
    PAGE_KIB,
    REFUSED_OPTIONS,
    SIZE_CLASSES,
    WARM,
)

# The last is for the largest chunk (MAX_NUMBER_OF_SLAB_CLASSES).
_MOST_CLASSES = 63
# It wants more entries in its hash table than locks for them (memcached_thread_init): the least power, by threads.
_HASHPOWERS: Final = ((2, 11), (3, 12), (4, 13), (10, 14), (20, 15))


@dataclass(slots=True)
class Arguments:
    """Meaning of extra arguments.

    Attributes:
        complaints: of each wrong one the field, what it must be, and what it is; empty where all are right.
        last: the value of each good flag and option, "" for one without, in the order in which they last stand.
    """

    complaints: list[str] = field(default_factory=list)
    last: dict[str, str] = field(default_factory=dict)

    def note(self, name: str, value: str) -> None:
        """Keep a good option or flag, of which what comes last holds."""
        self.last.pop(name, None)
        self.last[name] = value

    def _last_of(self, *names: str) -> str:
        """Find which of these names, which undo each other, stands last; "" where none does."""
        return next((each for each in reversed(self.last) if each in names), "")

    @property
    def chunk_kib(self) -> int:
        """Size of the largest chunk of an item."""
        match self._last_of("slab_chunk_max", "no_chunked_items") or self._last_of("no_modern"):
            case "slab_chunk_max":
                return int(self.last["slab_chunk_max"])
            case "":
                return CHUNK_KIB
            case _:
                return PAGE_KIB

    def item_step_kib(self, item_size_kib: int) -> int:
        """Return what the size of the largest item must be a multiple of, for an item of that size."""
        return self.chunk_kib if "slab_chunk_max" in self.last or item_size_kib <= PAGE_KIB else CHUNK_KIB

    @property
    def against_handover(self) -> set[str]:
        """Names with which servers cannot hand over: without CAS, a dump of keys, or room for marks in full ones."""
        names = list(self.last)
        crawls = names.index("lru_crawler") + 1 if "lru_crawler" in names else 0
        return {"-C", "-M", "-X"}.intersection(names) | {"no_lru_crawler", "no_modern"}.intersection(names[crawls:])

    @property
    def table_mib(self) -> int:
        """MiB of a hash table that begins with more entries than memcached's own; 0 without an option."""
        return -(-(8 << int(self.last["hashpower"])) // 2**20) if "hashpower" in self.last else 0

    @property
    def _sizes(self) -> str:
        return self.last.get("slab_sizes", "")

    @property
    def _smallest(self) -> int:
        return int(self.last.get("-n", ITEM_BYTES))

    @property
    def size_classes(self) -> int:
        """Largest number of sizes of chunks."""
        if self._sizes:
            return self._sizes.count("-") + 2
        return _MOST_CLASSES if float(self.last.get("-f", FACTOR)) < FACTOR else SIZE_CLASSES

    @property
    def least_item_bytes(self) -> int:
        """The smallest of them; at least what an item has of its own, and a byte."""
        if self._sizes:
            return max(int(self._sizes.split("-")[0]), ITEM_BYTES + ALIGNED_BYTES)
        return LEAST_ITEM_BYTES - ITEM_BYTES + -(-self._smallest // ALIGNED_BYTES) * ALIGNED_BYTES

    def contradictions(self) -> Iterator[str]:
        """Options that are right by themselves and make memcached end together."""
        hot, warm = int(self.last.get("hot_lru_pct", HOT)), int(self.last.get("warm_lru_pct", WARM))
        if hot + warm > HOT_AND_WARM:
            yield (
                f"hot_lru_pct and warm_lru_pct must be at most {HOT_AND_WARM} together ({HOT} and {WARM} if "
                f"omitted), got {hot} and {warm}"
            )
        sizes = self._sizes.split("-") if self._sizes else []
        if sizes and not self._smallest <= int(sizes[0]) <= int(sizes[-1]) <= self.chunk_kib * 1024:
            yield (
                f"slab_sizes must be from {self._smallest} (-n) to {self.chunk_kib * 1024} (slab_chunk_max), "
                f"got {shown(self._sizes)}"
            )
        unmaintained = self._last_of("lru_maintainer", "no_lru_maintainer", "no_modern") not in ("", "lru_maintainer")
        if unmaintained and "temporary_ttl" in self.last:
            yield "temporary_ttl must be omitted with no_lru_maintainer or no_modern"


@lru_cache(maxsize=64)  # most Memcacheds share their settings
def judge_arguments(arguments: tuple[str, ...], threads: int) -> Arguments:
    """Judge extra arguments, each a word of the command line; what is returned is never changed.

    Args:
        threads: of the server; it takes no more NAPI ids than that.
    """
    found = Arguments()
    after_unknown = False
    for index, flag, value, value_index in _parsed(arguments):
        letter = flag[1:] if len(flag) == 2 else LONG_FLAGS.get(flag[2:], "")
        if not (after_unknown and not flag):  # the value, it seems, of a flag that has been reported
            for complaint, wrong in _judged(flag, letter, value, threads, found):
                at, got = (index, arguments[index]) if wrong is None else (value_index, wrong)
                found.complaints.append(f"spec.extraArgs[{at}]: {complaint}, got {shown(got)}")
        after_unknown = letter not in FLAGS
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
            if name in LONG_FLAGS and FLAGS[LONG_FLAGS[name]].valued and not equals and index < len(arguments):
                value, index = arguments[index], index + 1
            yield at, f"--{name}", value, index - 1
        elif word.startswith("-") and len(word) > 1:
            letters = word[1:]
            for place, letter in enumerate(letters):
                if letter not in FLAGS or not FLAGS[letter].valued:
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
    return sorted(long for long in LONG_FLAGS if long.startswith(name))


def _whole_name(name: str) -> str:
    """Return the long flag that begins so, where it is one alone; else what was written."""
    meant = _meant(name)
    return meant[0] if len(meant) == 1 and name not in LONG_FLAGS else name


_Complaint = tuple[str, str | None]
"""What is wrong, and what is: None for the word of the flag itself."""


def _judged(flag: str, letter: str, value: str | None, threads: int, found: Arguments) -> Iterator[_Complaint]:
    """Yield what is wrong with a flag and its value."""
    known = FLAGS.get(letter)
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
        refused = next((why for prefix, why in REFUSED_OPTIONS.items() if name.startswith(prefix)), None)
        if refused:
            yield f"must not contain {name}: {refused}", option
        elif name not in OPTIONS:
            yield "must contain options of memcached, as listed by memcached --help below -o", option
        elif (check := OPTIONS[name]) is None:
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
