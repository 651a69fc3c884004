"""What is read of certificates, and when something about them changes."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import timedelta

import pytest
from hypothesis import given, strategies as st

from memcached_operator.servers.certificates import (
    STALE_S,
    Certificate,
    Shown,
    first_of_chain,
    missing_names,
    next_change_s,
    read_certificate,
)
from tests.certificates import DAY, Authority

GOOD = Authority().issue("shop.default.svc").der


def test_of_a_certificate_its_times_names_and_fingerprint_are_read() -> None:
    pair = Authority().issue("Shop.default.svc", "*.shop.default.svc", begins=-DAY, ends=timedelta(days=2))
    found = read_certificate(pair.der)
    assert found is not None
    assert found.names == ("shop.default.svc", "*.shop.default.svc")
    assert found.not_before == pair.certificate.not_valid_before_utc.timestamp()
    assert found.not_after == pair.certificate.not_valid_after_utc.timestamp()
    assert len(bytes.fromhex(found.fingerprint)) == 32
    bare = Authority().issue().der
    assert (read_certificate(bare) or found).names == ()
    assert read_certificate(bare) is read_certificate(bytes(bytearray(bare))), "the same one is read once"


@given(st.binary(max_size=200), st.integers(0, 200), st.integers(0, 255))
def test_no_bytes_raise_an_exception(noise: bytes, place: int, byte: int) -> None:
    spoilt = bytearray(GOOD)
    spoilt[place] = byte
    for der in (noise, bytes(spoilt)):
        found = read_certificate(der)
        assert found is None or isinstance(found, Certificate)


NAMES = [
    (("a.b.svc",), ["a.b.svc"], []),
    (("a.b.svc",), ["a.b.svc", "c.a.b.svc"], ["c.a.b.svc"]),
    (("*.a.b.svc",), ["a.b.svc", "c.a.b.svc"], ["a.b.svc"]),
    (("*.b.svc",), ["a.b.svc", "c.a.b.svc"], ["c.a.b.svc"]),
    ((), ["a.b.svc"], ["a.b.svc"]),
    (("a.b.svc",), [], []),
]


@pytest.mark.parametrize(("names", "desired", "missing"), NAMES)
def test_a_certificate_lacks_the_names_that_neither_it_nor_a_wildcard_of_one_level_has(
    names: tuple[str, ...], desired: list[str], missing: list[str]
) -> None:
    assert missing_names(Certificate("", 0.0, 1.0, names), desired) == missing


OLD, NEW = Certificate("old", 0.0, 5_000.0), Certificate("new", 100.0, 9_000.0)

CHANGES = [
    ([], None),
    ([Shown(OLD, 0.0)], 4_000.0),
    ([Shown(NEW, 0.0)], 8_000.0),
    ([Shown(OLD, 0.0), Shown(NEW, 900.0)], STALE_S - 100.0),
    # It is late already.
    ([Shown(OLD, 0.0), Shown(NEW, 200.0)], 4_000.0),
    ([Shown(Certificate("expired", 0.0, 999.0), 0.0)], None),
]


@pytest.mark.parametrize(("shown", "seconds"), CHANGES)
def test_it_is_reconciled_again_when_one_expires_or_is_late(shown: list[Shown], seconds: float | None) -> None:
    assert next_change_s(shown, 1_000.0) == seconds


def test_what_reads_certificates_is_not_loaded_before_one_is_there() -> None:
    code = "import sys, memcached_operator.operator; sys.exit('cryptography' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_of_a_chain_the_first_certificate_is_the_one_that_is_shown() -> None:
    authority = Authority()
    pair = authority.issue("shop.default.svc")
    assert (
        first_of_chain(pair.pem + authority.pem)
        == first_of_chain(b"of shop\n" + pair.pem)
        == read_certificate(pair.der)
    )


@pytest.mark.parametrize(
    ("pattern", "form"),
    [
        (b"^", "# für Läden -----BEGIN CERTIFICATE-----\n".encode()),
        (rb"\n", b" \t\r\n"),
        (rb"(?<=[a-z])", b" "),
        (b" CERTIFICATE", b" X509 CERTIFICATE"),
        (rb"(?<=[^-])\n(?=[^-])", b""),
    ],
)
def test_a_certificate_in_another_form_is_the_same_one(pattern: bytes, form: bytes) -> None:
    pair = Authority().issue("shop.default.svc")
    assert first_of_chain(re.sub(pattern, form, pair.pem)) == read_certificate(pair.der)


@pytest.mark.parametrize("chain", [b"", b"\xff", b"-----END CERTIFICATE-----", b"-----BEGIN CERTIFICATE-----\n!\n"])
def test_of_what_is_no_chain_nothing_is_made(chain: bytes) -> None:
    assert first_of_chain(chain) is None
