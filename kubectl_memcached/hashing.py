"""Pure: server of a key among those of a list, by the hash of a client library.

Tests hold each against what the library itself answers (`tests/unit/kubectl_memcached/owners`).
"""

from __future__ import annotations

import hashlib
import re
import struct
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

_32: Final = 0xFFFFFFFF
_64: Final = 0xFFFFFFFFFFFFFFFF
_DEFAULT_PORT: Final = ":11211"
_POINTS: Final = 160
"""Of each server on a ring of dalli's, and of libketama's."""
_POINTS_OF_PYLIBMC: Final = 100

Owner: TypeAlias = Callable[[Sequence[str], bytes], int]
"""The place in a list of at least one server, each as host:port, of the one that has a key."""


class ClientHash(NamedTuple):
    """Hash by which a client library chooses the server of a key.

    Attributes:
        description: which library, with which of its settings.
    """

    owner: Owner
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

    words = struct.unpack_from(f"<{len(data) // 8}Q", data)
    in_lanes = len(words) & ~3
    total = _P5
    if in_lanes:
        lanes = [(_P1 + _P2) & _64, _P2, 0, -_P1 & _64]
        for place, word in enumerate(words[:in_lanes]):
            lanes[place % 4] = mixed(lanes[place % 4], word)
        total = sum(_rotated(lane, bits, 64) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _64
        for lane in lanes:
            total = ((total ^ mixed(0, lane)) * _P1 + _P4) & _64
    total = (total + len(data)) & _64
    for word in words[in_lanes:]:
        total = (_rotated(total ^ mixed(0, word), 27, 64) * _P1 + _P4) & _64
    rest = data[len(words) * 8 :]
    if len(rest) >= 4:
        total = (_rotated(total ^ int.from_bytes(rest[:4], "little") * _P1 & _64, 23, 64) * _P2 + _P3) & _64
        rest = rest[4:]
    for byte in rest:
        total = _rotated(total ^ byte * _P5 & _64, 11, 64) * _P1 & _64
    total = (total ^ total >> 33) * _P2 & _64
    total = (total ^ total >> 29) * _P3 & _64
    return total ^ total >> 32


def _ring(points: Callable[[str], Iterable[int]], hashed: Callable[[bytes], int]) -> Owner:
    """A ring on which the server of a key is the one of the first point that is not before it."""

    def owner(servers: Sequence[str], key: bytes) -> int:
        ring = sorted((point, place) for place, server in enumerate(servers) for point in points(server))
        return ring[bisect_left(ring, (hashed(key), 0)) % len(ring)][1]

    return owner


def _dalli(servers: Sequence[str], key: bytes) -> int:
    ring = sorted(
        (int.from_bytes(hashlib.sha1(f"{server}:{point}".encode(), usedforsecurity=False).digest()[:4], "big"), place)
        for place, server in enumerate(servers)
        for point in range(_POINTS)
    )
    return ring[bisect_left(ring, (zlib.crc32(key) + 1, 0)) - 1][1]  # of the last point that is not behind the key


def _md5(data: bytes) -> tuple[int, ...]:
    """Four numbers of 32 bits."""
    return struct.unpack("<4I", hashlib.md5(data, usedforsecurity=False).digest())


def _ketama_points(server: str) -> Iterable[int]:
    for number in range(_POINTS // 4):
        yield from _md5(f"{server.removesuffix(_DEFAULT_PORT)}-{number}".encode())


def _pylibmc_points(server: str) -> Iterable[int]:
    name = server.removesuffix(_DEFAULT_PORT)
    return (_one_at_a_time(f"{name}-{number}".encode()) for number in range(_POINTS_OF_PYLIBMC))


def _one_at_a_time(key: bytes) -> int:
    """Bob Jenkins' hash of that name, of bytes with a sign, as libmemcached takes them."""
    total = 0
    for byte in key:
        total = (total + byte - (byte & 0x80) * 2) * 1025 & _32
        total ^= total >> 6
    total = total * 9 & _32
    total ^= total >> 11
    return total * 32769 & _32


def _modulo(hashed: Callable[[bytes], int]) -> Owner:
    return lambda servers, key: hashed(key) % len(servers)


CLIENTS: Final[Mapping[str, ClientHash]] = {
    "pymemcache": ClientHash(_rendezvous, "Python's pymemcache, HashClient"),
    "dskit": ClientHash(_jump, "Loki, Mimir and Tempo; --addresses unless they have dnssrvnoa+"),
    "thanos": ClientHash(_jump, "Thanos; --addresses unless it has dnssrvnoa+"),
    "ketama": ClientHash(
        _ring(_ketama_points, lambda key: _md5(key)[0]), "libketama; PHP's memcached with OPT_LIBKETAMA_COMPATIBLE"
    ),
    "pylibmc": ClientHash(_ring(_pylibmc_points, _one_at_a_time), 'Python\'s pylibmc with "ketama": True'),
    "dalli": ClientHash(_dalli, "Ruby's dalli"),
    "modulo": ClientHash(_modulo(zlib.crc32), "Go's gomemcache: the CRC-32 modulo the number of servers"),
    "python-memcached": ClientHash(
        _modulo(lambda key: zlib.crc32(key) >> 16 & 0x7FFF or 1), "Python's python-memcached"
    ),
    "libmemcached": ClientHash(_modulo(_one_at_a_time), "libmemcached without a ring; PHP's memcached by default"),
}
"""By the name that the command line has."""
