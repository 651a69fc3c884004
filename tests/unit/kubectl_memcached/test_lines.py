"""Lines of `watch` and of `lru_crawler metadump`, as memcached 1.6.18 and 1.6.45 write them, cut anywhere."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from kubectl_memcached.server import key_words
from kubectl_memcached.top import prefix_of, read_lines
from kubectl_memcached.words import PluginError, key_text, printable_text, seconds_text, size_text, table
from memcached_operator.servers.text_protocol import DumpedItem, read_items

WATCHED = (
    b"ts=1795999795.308938 gid=2 type=item_get key=a%3Ab%2520c status=not_found clsid=0 cfd=25 size=0\n"
    b"ts=1795999795.308946 gid=3 type=item_store key=a%3Ab status=stored cmd=set ttl=0 clsid=1 cfd=26 size=5\n"
    b"ts=1795999795.308950 gid=4 type=something_else key=x\n"
    b"ts=1795999795.308948 gid=5 type=item_get key=a%3Ab status=found clsid=1 cfd=25 size=5\n"
)
SEEN = [
    (b"item_get", b"a%3Ab%2520c", b"not_found", b"25", b"0"),
    (b"item_store", b"a%3Ab", b"stored", b"26", b"5"),
    (b"item_get", b"a%3Ab", b"found", b"25", b"5"),
]
DUMPED = (
    b"key=a%3Ab%2520c exp=1795999800 la=1795999794 cas=3 fetch=no cls=1 size=72\n"
    b"key=x exp=-1 la=1795999790 cas=4 fetch=yes cls=2 size=100\n"
)
ITEMS = [DumpedItem(b"a%3Ab%2520c", 1795999800, 1795999794, 3, 72), DumpedItem(b"x", -1, 1795999790, 4, 100)]


@given(st.integers(0, len(WATCHED)))
def test_watched_lines_are_read_wherever_they_are_cut(cut: int) -> None:
    first, begun = read_lines(WATCHED[:cut])
    second, rest = read_lines(begun + WATCHED[cut:])
    assert (first + second, rest) == (SEEN, b"")


@pytest.mark.parametrize(
    ("block", "other"),
    [
        (DUMPED, b""),
        (b"OK\r\n" + DUMPED, b""),
        (DUMPED + b"END\r\n", b"END"),
        (DUMPED + b"BUSY currently processing crawler request\r\n", b"BUSY currently processing crawler request"),
    ],
)
def test_a_dump_is_read_up_to_the_first_line_that_is_no_item(block: bytes, other: bytes) -> None:
    assert read_items(block) == (ITEMS, other)


def test_a_dumped_key_is_the_client_s() -> None:
    assert [each.key for each in ITEMS] == [b"a:b%20c", b"x"]


@pytest.mark.parametrize(("key", "prefix"), [(b"user:1:x", b"user:"), (b"user", b""), (b":x", b":"), (b"", b"")])
def test_a_prefix_ends_with_the_first_separator(key: bytes, prefix: bytes) -> None:
    assert prefix_of(key, b":") == prefix


@pytest.mark.parametrize(
    ("key", "words"),
    [(b"user:1", (b"user:1", b"")), (b"a b", (b"YSBi", b" b")), ("\u00e9".encode(), ("\u00e9".encode(), b""))],
)
def test_a_key_that_no_line_can_have_is_encoded(key: bytes, words: tuple[bytes, bytes]) -> None:
    assert key_words(key) == words


@pytest.mark.parametrize("key", [b"", b"x" * 251])
def test_what_can_be_no_key_is_refused(key: bytes) -> None:
    with pytest.raises(PluginError, match="1 to 250 bytes"):
        key_words(key)


def test_a_terminal_obeys_nothing_that_was_stored() -> None:
    assert printable_text(b"\x1b[2J\xff\n") == "\\x1b[2J\\xff\\n"


def test_a_hashed_key_is_the_beginning_of_its_sha_256() -> None:
    assert key_text(b"abc", hashed=True) == "ba7816bf8f01"
    assert key_text(b"abc", hashed=False) == "abc"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(
            (size_text(0), "0 B"),
            (size_text(1023), "1023 B"),
            (size_text(1536), "1.5 KiB"),
            (size_text(2**31), "2.0 GiB"),
        ),
        *(
            (seconds_text(0), "0s"),
            (seconds_text(61), "1m1s"),
            (seconds_text(90_061), "1d1h"),
            (seconds_text(-5), "0s"),
        ),
        (size_text(float("nan")), "-"),
    ],
)
def test_amounts_are_short(text: str, expected: str) -> None:
    assert text == expected


def test_columns_stand_below_each_other() -> None:
    assert table(("A", "LONG"), [("abc", "d")]) == "A     LONG\nabc   d\n"
