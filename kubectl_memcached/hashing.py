"""Pure: server of a key among those of a list, by the hash of a client library.

Tests hold each against what the library itself answers (`tests/unit/kubectl_memcached/owners`).
"""

from __future__ import annotations

import hashlib
import re
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

_32: Final = 0xFFFFFFFF
_64: Final = 0xFFFFFFFFFFFFFFFF
_DEFAULT_PORT: Final = ":11211"
_POINTS: Final = 160
"""Of each server on a ring of dalli's, and of libketama's."""
_POINTS_OF_PYLIBMC: Final = 100


class ClientHash(NamedTuple):
    """Hash by which a client library chooses the server of a key.

    Attributes:
        owner: the place in a list of at least one server, each as host:port, of the one that has a key.
        description: which library, with which of its settings.
    """

    owner: Callable[[Sequence[str], bytes], int]
    description: str


def _rendezvous(servers: Sequence[str], key: bytes) -> int:
    return max(range(len(servers)), key=lambda place: (_murmur3(b"%b-%b" % (servers[place].encode(), key)), place))


def _murmur3(data: bytes) -> int:
    """MurmurHash3 of 32 bits, with the seed 0."""
    total = 0
    end = len(data) & ~3
    for place in range(0, len(data), 4):
        block = int.from_bytes(data[place : place + 4], "little") * 0xCC9E2D51 & _32
        total ^= _rotated(block, 15, 32) * 0x1B873593 & _32
        if place < end:
            total = (_rotated(total, 13, 32) * 5 + 0xE6546B64) & _32
    total ^= len(data)
    total = (total ^ total >> 16) * 0x85EBCA6B & _32
    total = (total ^ total >> 13) * 0xC2B2AE35 & _32
    return total ^ total >> 16


def _rotated(number: int, bits: int, width: int) -> int:
    return (number << bits | number >> (width - bits)) & ((1 << width) - 1)


def _jump(servers: Sequence[str], key: bytes) -> int:
    """Place in natural order: Lamping and Veach, "A Fast, Minimal Memory, Consistent Hash Algorithm"."""
    order = sorted(range(len(servers)), key=lambda place: _natural(servers[place]))
    state = _xxhash64(key)
    bucket, following = -1, 0
    while following < len(servers):
        bucket = following
        state = (state * 2862933555777941757 + 1) & _64
        following = int((bucket + 1) * ((1 << 31) / ((state >> 33) + 1)))
    return order[bucket]


def _natural(text: str) -> list[tuple[bool, int, str]]:
    """Numbers by their value, and before all else: as texts their digits are less than letters are."""
    return [
        (not part.isdigit(), int(part) if part.isdigit() else 0, "" if part.isdigit() else part)
        for part in re.findall(r"[0-9]+|[^0-9]+", text)
    ]


_P1, _P2, _P3, _P4, _P5 = (
    *(0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9),
    *(0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5),
)


def _xxhash64(data: bytes) -> int:
    """xxHash of 64 bits, with the seed 0."""

    def mixed(lane: int, block: int) -> int:
        return _rotated((lane + block * _P2) & _64, 31, 64) * _P1 & _64

    place = 0
    if len(data) >= 32:
        lanes = [(_P1 + _P2) & _64, _P2, 0, -_P1 & _64]
        while place + 32 <= len(data):
            for lane in range(4):
                lanes[lane] = mixed(lanes[lane], int.from_bytes(data[place : place + 8], "little"))
                place += 8
        total = sum(_rotated(lane, bits, 64) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _64
        for lane in lanes:
            total = ((total ^ mixed(0, lane)) * _P1 + _P4) & _64
    else:
        total = _P5
    total = (total + len(data)) & _64
    while place + 8 <= len(data):
        total ^= mixed(0, int.from_bytes(data[place : place + 8], "little"))
        total = (_rotated(total, 27, 64) * _P1 + _P4) & _64
        place += 8
    if place + 4 <= len(data):
        total ^= int.from_bytes(data[place : place + 4], "little") * _P1 & _64
        total = (_rotated(total, 23, 64) * _P2 + _P3) & _64
        place += 4
    for byte in data[place:]:
        total = _rotated(total ^ byte * _P5 & _64, 11, 64) * _P1 & _64
    total = (total ^ total >> 33) * _P2 & _64
    total = (total ^ total >> 29) * _P3 & _64
    return total ^ total >> 32


def _ring(points: Iterable[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """The values of points on a ring, in their order, and the servers that they are of."""
    ordered = sorted(points)
    return [value for value, _ in ordered], [place for _, place in ordered]


def _dalli(servers: Sequence[str], key: bytes) -> int:
    values, places = _ring(
        (int.from_bytes(hashlib.sha1(f"{server}:{point}".encode(), usedforsecurity=False).digest()[:4], "big"), place)
        for place, server in enumerate(servers)
        for point in range(_POINTS)
    )
    return places[bisect_right(values, zlib.crc32(key)) - 1]


def _ketama(servers: Sequence[str], key: bytes) -> int:
    """Four points of each digest."""
    values, places = _ring(
        (int.from_bytes(_md5(f"{_libmemcached(server)}-{point}".encode())[at : at + 4], "little"), place)
        for place, server in enumerate(servers)
        for point in range(_POINTS // 4)
        for at in (0, 4, 8, 12)
    )
    return places[bisect_left(values, _md5_number(key)) % len(values)]


def _pylibmc(servers: Sequence[str], key: bytes) -> int:
    values, places = _ring(
        (_one_at_a_time(f"{_libmemcached(server)}-{point}".encode()), place)
        for place, server in enumerate(servers)
        for point in range(_POINTS_OF_PYLIBMC)
    )
    return places[bisect_left(values, _one_at_a_time(key)) % len(values)]


def _libmemcached(server: str) -> str:
    return server.removesuffix(_DEFAULT_PORT)


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def _md5_number(data: bytes) -> int:
    return int.from_bytes(_md5(data)[:4], "little")


def _one_at_a_time(key: bytes) -> int:
    """Bob Jenkins' hash of that name, of bytes with a sign, as libmemcached takes them."""
    total = 0
    for byte in key:
        total = (total + byte - (byte & 0x80) * 2) * 1025 & _32
        total ^= total >> 6
    total = total * 9 & _32
    total ^= total >> 11
    return total * 32769 & _32


def _modulo(hashed: Callable[[bytes], int]) -> Callable[[Sequence[str], bytes], int]:
    return lambda servers, key: hashed(key) % len(servers)


def _crc15(key: bytes) -> int:
    return zlib.crc32(key) >> 16 & 0x7FFF


CLIENTS: Final[Mapping[str, ClientHash]] = {
    "pymemcache": ClientHash(_rendezvous, "Python's pymemcache, HashClient"),
    "dskit": ClientHash(_jump, "Loki, Mimir and Tempo; --addresses unless they have dnssrvnoa+"),
    "thanos": ClientHash(_jump, "Thanos; --addresses unless it has dnssrvnoa+"),
    "ketama": ClientHash(_ketama, "libketama; PHP's memcached with OPT_LIBKETAMA_COMPATIBLE"),
    "pylibmc": ClientHash(_pylibmc, 'Python\'s pylibmc with "ketama": True'),
    "dalli": ClientHash(_dalli, "Ruby's dalli"),
    "modulo": ClientHash(_modulo(zlib.crc32), "Go's gomemcache: the CRC-32 modulo the number of servers"),
    "python-memcached": ClientHash(_modulo(lambda key: _crc15(key) or 1), "Python's python-memcached"),
    "libmemcached": ClientHash(_modulo(_one_at_a_time), "libmemcached without a ring; PHP's memcached by default"),
}
"""By the name that is given on the command line."""
