"""Trust, client certificates and their rotation, each proven by a handshake in memory."""

from __future__ import annotations

import os
import ssl
import tempfile
from pathlib import Path

import pytest

from operator_runtime import load_cert_chain
from operator_runtime.client.access.tls import ClientCertificate, ClientTls, Pem
from operator_runtime.client.errors import AuthenticationUnavailable
from operator_runtime.testing.clock import FakeClock
from tests.unit.operator_runtime.client.access.auth_support import Authority, handshake, server_context

AUTHORITY = Authority()
SERVER = AUTHORITY.issue("server.test")


@pytest.fixture
def server(tmp_path: Path) -> ssl.SSLContext:
    return server_context(AUTHORITY, SERVER, str(tmp_path))


def trusting(
    pem: bytes = AUTHORITY.pem, certificate: ClientCertificate | None = None, insecure: bool = False
) -> ClientTls:
    return ClientTls(
        clock=FakeClock(),
        authority=None if insecure else Pem("certificate-authority-data of cluster c", data=pem),
        certificate=Pem("client-certificate-data of user u", data=certificate.chain) if certificate else None,
        key=Pem("client-key-data of user u", data=certificate.key) if certificate else None,
        insecure=insecure,
    )


def test_a_server_of_the_authority_is_trusted_by_address_and_by_name(server: ssl.SSLContext) -> None:
    assert handshake(trusting().context(), server) is None
    assert handshake(trusting().context(), server, "server.test") is None
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        handshake(trusting().context(), server, "other.test")


def test_another_authoritys_server_is_refused_unless_pinned_or_insecure(server: ssl.SSLContext) -> None:
    for tls in (trusting(Authority("another").pem), ClientTls(clock=FakeClock())):  # without one, the system's are
        assert (tls.context().verify_mode, tls.context().check_hostname) == (ssl.CERT_REQUIRED, True)
        with pytest.raises(ssl.SSLCertVerificationError):
            handshake(tls.context(), server)
    assert handshake(trusting(SERVER.chain).context(), server) is None
    assert handshake(trusting(insecure=True).context(), server, "other.test") is None


@pytest.mark.parametrize(
    "pem", [b"", b"  \n", b"no PEM", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_an_authority_without_a_certificate_never_falls_back_to_the_systems(pem: bytes) -> None:
    with pytest.raises(AuthenticationUnavailable, match="certificate-authority-data of cluster c: there is no PEM"):
        trusting(pem).context()


@pytest.fixture
def needs_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system without files in memory."""
    monkeypatch.delattr(os, "memfd_create")


def test_the_client_certificate_is_shown_without_a_file(
    server: ssl.SSLContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    assert handshake(trusting(certificate=AUTHORITY.issue("jane")).context(), server) == "jane"


@pytest.mark.usefixtures("needs_file")
def test_the_client_certificate_is_shown_and_leaves_no_file_behind(
    server: ssl.SSLContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    assert handshake(trusting(certificate=AUTHORITY.issue("jane")).context(), server) == "jane"
    mixed = ClientCertificate("x", AUTHORITY.issue("jane").chain, AUTHORITY.issue("eve").key)
    with pytest.raises(AuthenticationUnavailable, match=r"certificate-data of user u: .* do not belong together"):
        trusting(certificate=mixed).context()
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.usefixtures("needs_file")
def test_a_key_is_readable_by_its_owner_alone_while_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    modes = []
    load = ssl.SSLContext.load_cert_chain

    def spy(context: ssl.SSLContext, name: str, **options: object) -> None:
        modes.append(Path(name).stat().st_mode & 0o777)
        load(context, name, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", spy)
    trusting(certificate=AUTHORITY.issue("jane")).context()
    assert modes == [0o600]


@pytest.mark.usefixtures("needs_file")
def test_no_place_for_the_temporary_file_and_an_encrypted_key_are_said_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AuthenticationUnavailable, match="or the key is encrypted"):  # nobody is asked at the terminal
        trusting(certificate=AUTHORITY.issue("jane", passphrase=b"secret")).context()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(AuthenticationUnavailable, match=r"no temporary file for it in .*gone .*set TMPDIR"):
        trusting(certificate=AUTHORITY.issue("jane")).context()


def test_a_plugins_certificate_goes_first_and_another_one_is_another_context(server: ssl.SSLContext) -> None:
    tls, first = trusting(certificate=AUTHORITY.issue("jane")), AUTHORITY.issue("plugin")
    tls.update(first)
    context = tls.context()
    tls.update(first)
    assert tls.context() is context
    assert handshake(context, server) == "plugin"
    tls.update(AUTHORITY.issue("plugin"))
    assert tls.context() is not context


def test_files_are_read_once_a_minute_and_an_unchanged_one_keeps_its_context(tmp_path: Path) -> None:
    path, clock = tmp_path / "ca.crt", FakeClock()
    path.write_bytes(AUTHORITY.pem)
    tls = ClientTls(clock=clock, authority=Pem("ca", path=path))
    context = tls.context()
    clock.advance(60)
    tls.update()
    assert tls.context() is context
    path.write_bytes(Authority("new").pem)
    clock.advance(59)
    tls.update()
    assert tls.context() is context
    clock.advance(1)
    tls.update()
    assert tls.changed_at == clock.now
    assert tls.context() is not context


@pytest.mark.parametrize("content", [None, b"", b"half a certif"])
def test_half_a_rotation_keeps_the_last_good_context_and_is_tried_again(
    tmp_path: Path, content: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    path, clock = tmp_path / "ca.crt", FakeClock()
    path.write_bytes(AUTHORITY.pem)
    tls = ClientTls(clock=clock, authority=Pem("ca", path=path))
    context = tls.context()
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    clock.advance(60)
    tls.update()
    assert tls.context() is context
    assert "Using the last valid TLS settings" in caplog.text
    path.write_bytes(Authority("new").pem)
    clock.advance(60)
    tls.update()
    assert tls.context() is not context


def test_a_file_missing_at_the_start_is_named(tmp_path: Path) -> None:
    tls = ClientTls(clock=FakeClock(), authority=Pem("certificate-authority of cluster c", path=tmp_path / "ca.crt"))
    with pytest.raises(AuthenticationUnavailable, match=r"authority of cluster c: .*ca\.crt cannot be read \(No such"):
        tls.context()
    (tmp_path / "ca.crt").write_bytes(AUTHORITY.pem)
    assert tls.context().verify_mode == ssl.CERT_REQUIRED


@pytest.mark.parametrize("pem", ["", "no PEM", "another's key", "an encrypted key"])
def test_what_is_no_certificate_with_its_key_is_refused_and_nobody_asked_for_a_passphrase(pem: str) -> None:
    jane = AUTHORITY.issue("jane", passphrase=b"secret" if pem == "an encrypted key" else None)
    key = AUTHORITY.issue("eve").key if pem == "another's key" else jane.key
    with pytest.raises(ssl.SSLError):
        load_cert_chain(trusting().context(), jane.chain + key if pem.startswith("an") else pem.encode())
