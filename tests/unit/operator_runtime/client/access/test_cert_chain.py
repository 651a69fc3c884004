"""A certificate in memory, shown in a handshake."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import pytest

from operator_runtime import load_cert_chain
from operator_runtime.client.access.tls import ClientTls, Pem
from operator_runtime.testing.clock import FakeClock
from tests.unit.operator_runtime.client.access.auth_support import Authority, handshake, server_context

AUTHORITY = Authority()


def client() -> ssl.SSLContext:
    return ClientTls(clock=FakeClock(), authority=Pem("ca", data=AUTHORITY.pem)).context()


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_certificate_in_memory_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: bool) -> None:
    if not in_memory:  # as on a system without such files
        monkeypatch.delattr(os, "memfd_create", raising=False)
    jane, context = AUTHORITY.issue("jane"), client()
    load_cert_chain(context, jane.chain + jane.key)
    server = server_context(AUTHORITY, AUTHORITY.issue("server.test"), str(tmp_path))
    assert handshake(context, server) == "jane"


@pytest.mark.parametrize("pem", ["", "no PEM", "another's key", "an encrypted key"])
def test_what_is_no_certificate_with_its_key_is_refused_and_nobody_asked_for_a_passphrase(pem: str) -> None:
    jane = AUTHORITY.issue("jane", passphrase=b"secret" if pem == "an encrypted key" else None)
    key = AUTHORITY.issue("eve").key if pem == "another's key" else jane.key
    with pytest.raises(ssl.SSLError):
        load_cert_chain(client(), jane.chain + key if pem.startswith("an") else pem.encode())
