"""Extra arguments of memcached: what is refused and in which words, and that memcached takes what is not."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from string import ascii_letters

import pytest
from hypothesis import assume, given, settings, strategies as st

from memcached_operator.api.arguments import judge_arguments

THREADS = 4
REACHED = "servers are reached over TCP on port 11211, as the Service, the list and the probe say; omit it"
UNKNOWN = "must be a flag of memcached, as listed by memcached --help"
UNKNOWN_OPTION = "must contain options of memcached, as listed by memcached --help below -o"
ALONE = "must be a flag or its value; memcached ignores other words"
ENDS = "memcached prints a text and exits; omit it"
DISK = "spec.extstore says how a server uses a disk; set that field instead"
TLS = "spec.tls specifies the TLS of servers; set that field instead"

REFUSED: list[tuple[list[str], str]] = [
    # What a field says, however it is written.
    (["-m", "128"], '[0]: must not contain -m: it would undo spec.memory; set that field instead, got "-m"'),
    (["-v", "-c9"], '[1]: must not contain -c: it would undo spec.maxConnections; set that field instead, got "-c9"'),
    (["--memory-l=9"], "[0]: must not contain --memory-limit: it would undo spec.memory; set that field instead, got"),
    # What the operator decides.
    (["-p", "11212"], f'[0]: must not contain -p: {REACHED}, got "-p"'),
    (["--unix-s", "/x", "-a", "777"], f'[0]: must not contain --unix-socket: {REACHED}, got "--unix-s"'),
    (["-u", "root"], "[0]: must not contain -u: set spec.podTemplate.spec.securityContext instead"),
    (["-d"], "[0]: must not contain -d: a server that leaves the foreground ends its container; omit it"),
    (["-e", "/x"], "[0]: must not contain -e: set spec.warmRestart instead"),
    (["--memory-f=/x"], "[0]: must not contain --memory-file: set spec.warmRestart instead"),
    (["-Z"], f"[0]: must not contain -Z: {TLS}"),
    (["-S"], "[0]: must not contain -S: it requires authentication for the binary protocol only; omit it"),
    (
        ["-Y", "/x"],
        "[0]: must not contain -Y: spec.auth specifies the passwords that servers require; set that field instead",
    ),
    (["-A"], "[0]: must not contain -A: any client could stop a server; omit it"),
    (["-vVi"], f'[0]: must not contain -V: {ENDS}, got "-vVi"; spec.extraArgs[0]: must not contain -i: {ENDS}, got'),
    (["-o", "ssl_key=/x"], f'[1]: must not contain ssl_key: {TLS}, got "ssl_key=/x"'),
    (["-o", "modern,proxy_config=routelib"], "[1]: must not contain proxy_config: spec.handover says whether"),
    (["--ext=ext_path=/x:1G"], f'[0]: must not contain ext_path: {DISK}, got "ext_path=/x:1G"'),
    # What memcached does not take, or ignores.
    (["-v=1"], f'[0]: {UNKNOWN}, got "-v=1"'),
    (["--no-such", "word", "-x"], f'[0]: {UNKNOWN}, got "--no-such"; spec.extraArgs[2]: {UNKNOWN}, got "-x"'),
    (["--max-reqs-per-event 20"], f'[0]: {UNKNOWN}, got "--max-reqs-per-event 20"'),
    (["--ma", "3"], "[0]: must be one flag, written in full; so begin --max-item-size and --max-reqs-per-event, got"),
    (["word"], f'[0]: {ALONE}, got "word"'),
    (["--", "-v"], f'[1]: {ALONE}, got "-v"'),
    (["-R", "20", "30"], f'[2]: {ALONE}, got "30"'),
    (["-R 50"], '[0]: must contain -R and its value as two words, got "-R 50"'),
    (["-vR"], '[0]: must be followed by the value of -R, got "-vR"'),
    (["--disable-cas=1"], '[0]: must be --disable-cas without a value, got "--disable-cas=1"'),
    (["-R", "-v"], '[1]: must set -R to a whole number from 1 to 2147483647, got "-v"'),
    (["--max-reqs="], '[0]: must set --max-reqs-per-event to a whole number from 1 to 2147483647, got ""'),
    (["-f", "1"], '[1]: must set -f to a number above 1, got "1"'),
    (["-D", "::"], '[1]: must set -D to one character, got "::"'),
    (["-N", "5"], '[1]: must set -N to at most 4, the value of spec.threads, got "5"'),
    (["-o", "no_such"], f'[1]: {UNKNOWN_OPTION}, got "no_such"'),
    (["-o", "modern,,track_sizes"], f'[1]: {UNKNOWN_OPTION}, got ""'),
    (["-o", "idle_timeout"], '[1]: must set idle_timeout to a whole number from 0 to 2147483647, got "idle_timeout"'),
    (["-o", "maxconns_fast=no"], '[1]: must contain maxconns_fast without a value, got "maxconns_fast=no"'),
    (["-o", "slab_automove_ratio=2"], "[1]: must set slab_automove_ratio to a number above 0 and at most 1, got"),
    (["-o", "slab_chunk_max=48"], "[1]: must set slab_chunk_max to a power of two of KiB from 1 to 1024, got"),
    (["-o", "hash_algorithm=md5"], "[1]: must set hash_algorithm to murmur3 or jenkins or xxh3, got"),
    (["-o", "hot_lru_pct=50"], ": hot_lru_pct and warm_lru_pct must be at most 80 together (20 and 40 if omitted"),
    (["-o", "slab_sizes=100-108"], "[1]: must set slab_sizes to at most 62 numbers of bytes such as 100-200-400, each"),
    (
        ["-n100", "-o", "slab_sizes=90,slab_chunk_max=64"],
        ": slab_sizes must be from 100 (-n) to 65536 (slab_chunk_max)",
    ),
    (["-o", "temporary_ttl=9,no_modern"], ": temporary_ttl must be omitted with no_lru_maintainer or no_modern"),
]

GOOD: list[list[str]] = [
    *(["-v"], ["-MCF"], ["-XW"], ["--disable-w", "--disable-evictions"], ["--verbose", "--protocol=ascii"]),
    *(["-R", "50"], ["-vR50"], ["--max-r", "50"], ["-b", "2048", "-n48", "-f1.5"], ["-D", "/"], ["-D", "-"]),
    *(["-B", "auto"], ["-N4"], ["--slab-g=1.25", "--slab-m", "64"], ["-o", "modern"]),
    ["-o", "idle_timeout=60,no_modern,hashpower=18"],
    ["-vomaxconns_fast,track_sizes", "-o", "lru_crawler_sleep=200"],
    ["--extended=hash_algorithm=xxh3,slab_automove_window=10"],
    ["--ext", "hot_lru_pct=10,warm_lru_pct=50,hot_max_factor=0.5"],
    ["-o", "slab_chunk_max=512,temporary_ttl=30,tail_repair_time=100,read_buf_mem_limit=64"],
    ["-o", "slab_sizes=100-200-400,no_slab_automove,no_lru_crawler,watcher_logbuf_size=512"],
    ["-v", "--"],
]


def complaints(arguments: Sequence[str]) -> str:
    return "; ".join(judge_arguments(tuple(arguments), THREADS).complaints)


@pytest.mark.parametrize(("arguments", "words"), REFUSED)
def test_what_is_refused_is_named_with_what_it_must_be_or_what_to_do_instead(arguments: list[str], words: str) -> None:
    assert complaints(arguments).startswith(f"spec.extraArgs{words}")


@pytest.mark.parametrize("arguments", GOOD)
def test_what_memcached_takes_is_right_however_it_is_written(arguments: list[str]) -> None:
    assert complaints(arguments) == ""


def test_the_page_names_every_flag_that_is_refused() -> None:
    page = (Path(__file__).parents[4] / "docs" / "memcached-settings.md").read_text()
    rows = [row.split(" | ")[0] for row in page.splitlines() if row.startswith("| `-")]
    named = set(re.findall(r"`-([A-Za-z])`", " ".join(rows)))
    refused = {letter for letter in ascii_letters if "must not contain" in complaints([f"-{letter}", "9"])}
    assert named == refused


@given(st.lists(st.text(max_size=6) | st.text("-omMvR=,0 ", max_size=6), max_size=5))
def test_any_words_are_judged(arguments: list[str]) -> None:
    assert all(each.startswith("spec.extraArgs") for each in judge_arguments(tuple(arguments), THREADS).complaints)


FIELDS = {
    "m": ("memory-limit", "memory"),
    "c": ("conn-limit", "maxConnections"),
    "t": ("threads", "threads"),
    "I": ("max-item-size", "maxItemSize"),
}


@given(st.sampled_from(list(FIELDS)), st.integers(0, 5), st.lists(st.sampled_from(GOOD[:-1]), max_size=3), st.data())
def test_no_way_of_writing_a_flag_undoes_what_a_field_says(
    letter: str, endpoint: int, around: list[list[str]], data: st.DataObject
) -> None:
    long, field = FIELDS[letter]
    cut = data.draw(st.integers(1, len(long)))
    assume(judge_arguments((f"--{long[:cut]}=9",), THREADS).complaints[0].find("written in full") < 0)
    endpoints = (["-X", "9"], ["-X9"], ["-vX9"], ["-CMX", "9"], [f"--{long[:cut]}=9"], [f"--{long[:cut]}", "9"])
    words = [word.replace("X", letter) for word in endpoints[endpoint]]
    before = data.draw(st.integers(0, len(around)))
    arguments = [word for each in (*around[:before], words, *around[before:]) for word in each]
    assert f"it would undo spec.{field}; set that field instead" in complaints(arguments)


def test_the_step_of_the_largest_item_is_what_the_options_make_of_its_chunks() -> None:
    def step(arguments: list[str], item_kib: int) -> int:
        return judge_arguments(tuple(arguments), THREADS).item_step_kib(item_kib)

    assert (step([], 512), step([], 2048)) == (512, 512)
    assert (step(["-o", "slab_chunk_max=64"], 64), step(["-o", "slab_chunk_max=1024"], 4096)) == (64, 1024)
    assert (step(["-o", "no_modern"], 1024), step(["-o", "no_modern"], 2048)) == (1024, 512)
    assert step(["-o", "slab_chunk_max=64,no_modern"], 128) == 64
    assert (step(["-o", "no_chunked_items"], 1024), step(["-o", "no_chunked_items"], 2048)) == (1024, 512)


def test_a_hash_table_that_begins_large_takes_8_bytes_for_each_entry() -> None:
    assert judge_arguments((), THREADS).table_mib == 0
    assert [judge_arguments(("-o", f"hashpower={power}"), THREADS).table_mib for power in (13, 17, 20, 32)] == [
        1,
        1,
        8,
        32768,
    ]


@pytest.mark.parametrize(
    ("threads", "least"),
    [(1, 12), (2, 12), (3, 12), (4, 13), (5, 14), (10, 14), (11, 15), (20, 15), (21, 16), (64, 16)],
)
def test_a_hash_table_has_more_entries_than_locks(threads: int, least: int) -> None:
    """As found by starting memcached 1.6.45: with fewer it ends at once."""
    assert not judge_arguments(("-o", f"hashpower={least}"), threads).complaints
    (complaint,) = judge_arguments(("-o", f"modern,hashpower={least - 1}"), threads).complaints
    assert f'got "hashpower={least - 1}"' in complaint


@pytest.mark.parametrize(
    ("arguments", "classes", "least_bytes"),
    [
        ([], 39, 96),
        (["-f", "1.05"], 63, 96),
        (["-f2"], 39, 96),
        (["-n", "1"], 39, 56),
        (["-n", "50"], 39, 104),
        (["-o", "slab_sizes=100-200-400"], 4, 100),
        (["-o", "slab_sizes=48"], 2, 56),
    ],
)
def test_sizes_of_chunks_are_as_the_arguments_say(arguments: list[str], classes: int, least_bytes: int) -> None:
    found = judge_arguments(tuple(arguments), THREADS)
    assert (found.complaints, found.size_classes, found.least_item_bytes) == ([], classes, least_bytes)


# Beside a real memcached, where there is one.


def starts(arguments: Sequence[str]) -> bool:
    """Whether a memcached with the operator's flags and these begins to listen; without it, it has ended."""
    user = ["-u", "nobody"] if os.getuid() == 0 else []
    # On a port that is free, and the limit of open files of this machine; -vv has it say that it listens.
    command = ["memcached", *user, "-l", "127.0.0.1", "-p", "-1", "-m", "64", "-c", "100", "-t", str(THREADS)]
    command += ["-I", "1m", "-o", "modern", "-vv", *arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as server:
        assert server.stderr is not None
        try:
            return any(b"server listening" in line for line in server.stderr)
        finally:
            server.kill()


real_memcached = pytest.mark.skipif(
    shutil.which("memcached") is None and not os.environ.get("CI"), reason="no memcached on the PATH"
)


@real_memcached
@pytest.mark.parametrize("arguments", GOOD)
def test_memcached_starts_with_what_is_right(arguments: list[str]) -> None:
    assert starts(arguments)


@real_memcached
@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(GOOD), max_size=4), st.integers(0, 8))
def test_memcached_starts_with_any_words_that_are_right_together(several: list[list[str]], left_out: int) -> None:
    arguments = [word for each in several for word in each]
    del arguments[left_out : left_out + 1]
    assume(not complaints(arguments))
    assert starts(arguments)


@real_memcached
@pytest.mark.parametrize(
    "arguments",
    [
        *(["-x"], ["-v=1"], ["--ma", "3"], ["-vR"], ["--disable-cas=1"], ["-R0"], ["-f", "1"], ["-N", "5"], ["-h"]),
        *(["-o", "no_such"], ["-o", "modern,,track_sizes"], ["-o", "idle_timeout"], ["-o", "hot_lru_pct=50"]),
        *(["-o=modern"], ["-o", "modern -v"], ["-o", "hash_algorithm=md5"], ["-o", "temporary_ttl=9,no_modern"]),
    ],
)
def test_memcached_ends_over_what_it_does_not_take(arguments: list[str]) -> None:
    assert complaints(arguments)
    assert not starts(arguments)
