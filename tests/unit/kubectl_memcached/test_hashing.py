"""Which server has a key, held against what the client libraries themselves answer."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from pymemcache.client.rendezvous import RendezvousHash

from kubectl_memcached.hashing import CLIENTS
from tests.unit.kubectl_memcached.owners.record import FILE, KEYS, SERVERS, go_answers

ANSWERS: dict[str, list[list[str]]] = json.loads(FILE.read_text())
_KEYS = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=250)
_SERVERS = st.lists(st.from_regex(r"[a-z]{1,9}-[0-9]\.x\.svc:1121[12]", fullmatch=True), min_size=1, unique=True)


def _owners(client: str, servers: Sequence[str], keys: Sequence[str]) -> list[str]:
    return [servers[CLIENTS[client].owner(servers, key.encode())] for key in keys]


@pytest.mark.parametrize("client", ANSWERS)
def test_each_key_is_where_the_library_says(client: str) -> None:
    assert [_owners(client, servers, KEYS) for servers in SERVERS] == ANSWERS[client]


@given(_SERVERS, _KEYS)
def test_each_key_is_where_pymemcache_has_it(servers: list[str], key: str) -> None:
    assert _owners("pymemcache", servers, [key]) == [RendezvousHash(servers).get_node(key)]


@pytest.mark.parametrize(("key", "hashed"), [("a", 0x68B7), ("key-00001", 0x190F)])
def test_python_memcached_takes_fifteen_bits_of_the_checksum(key: str, hashed: int) -> None:
    servers = [str(number) for number in range(1, 0x8000)]
    assert CLIENTS["python-memcached"].owner(servers, key.encode()) == hashed % len(servers)


def test_every_client_is_held_against_its_library() -> None:
    assert CLIENTS.keys() - ANSWERS.keys() == {"pymemcache", "python-memcached"}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_recorded_answers_are_those_of_the_go_packages(tmp_path: Path) -> None:
    if shutil.which("go") is None:
        pytest.skip("no Go")
    found = go_answers(tmp_path)
    assert found == {name: ANSWERS[name] for name in found}
