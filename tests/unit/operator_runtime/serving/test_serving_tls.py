"""Certificates to serve with, shown to a client that connects."""

from __future__ import annotations

import logging
import os
import ssl
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp.web import BaseRequest
from cryptography import x509

from operator_runtime.serving.http_server import HttpServer
from operator_runtime.serving.listening import ServingError
from operator_runtime.serving.responses import HttpResponse, text_response
from operator_runtime.serving.self_signed import self_signed
from operator_runtime.serving.serving_tls import CERTIFICATE_FILE, KEY_FILE, CertificateFiles, self_signed_context
from operator_runtime.settings.listen_address import ListenAddress
from tests.unit.operator_runtime.http import connected, get_bytes
from tests.unit.operator_runtime.series import series

FLAG = "--cert-dir"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def write(directory: Path, *names: str) -> None:
    """A new certificate for these names, as a Secret's volume has it."""
    key, begin, certificate = self_signed(names, NOW).partition(b"-----BEGIN CERTIFICATE")
    (directory / KEY_FILE).write_bytes(key)
    (directory / CERTIFICATE_FILE).write_bytes(begin + certificate)


async def hello(request: BaseRequest) -> HttpResponse:
    return text_response(200, "hello")


def trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def shown_names(context: ssl.SSLContext) -> list[str]:
    """For which names the certificate is that a client without SNI is shown."""
    server = HttpServer("test", "--flag", ListenAddress("127.0.0.1", 0), hello, context)
    async with server, connected(server.url, trusting()) as client:
        assert (await client.exchange(get_bytes("/"))).endswith(b"hello")
        der = client.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    names = x509.load_der_x509_certificate(der).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    return [str(each.value) for each in names.value]


async def test_a_half_written_renewal_leaves_the_last_good_ones(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    write(tmp_path, "good.example")
    files = CertificateFiles(tmp_path, FLAG)
    key = (tmp_path / KEY_FILE).read_bytes()
    write(tmp_path, "new.example")
    new_key = (tmp_path / KEY_FILE).read_bytes()
    (tmp_path / KEY_FILE).write_bytes(key)
    for _ in range(2):
        assert await shown_names(files.context) == ["good.example"]
    (complaint,) = caplog.messages
    assert complaint.startswith("using the last valid certificate for metrics:")
    assert counts(files)["certwatcher_read_certificate_errors_total"] == 1
    assert counts(files)["certwatcher_last_read_successful"] == 0
    (tmp_path / KEY_FILE).write_bytes(new_key + b"\n")
    assert await shown_names(files.context) == ["new.example"]
    assert counts(files) == {
        "certwatcher_read_certificate_total": 3,
        "certwatcher_read_certificate_errors_total": 1,
        "certwatcher_last_read_successful": 1,
    }
    (tmp_path / CERTIFICATE_FILE).unlink()
    assert await shown_names(files.context) == ["new.example"]
    assert counts(files)["certwatcher_last_read_successful"] == 0


def counts(files: CertificateFiles) -> dict[str, float]:
    return {name: value for name, its in series(files.families()).items() for value in its.values()}


@pytest.mark.parametrize("key", [None, b"nonsense", b"encrypted"])
def test_what_cannot_be_served_with_names_the_flag(tmp_path: Path, key: bytes | None) -> None:
    write(tmp_path, "name.example")
    (tmp_path / KEY_FILE).unlink()
    if key == b"encrypted":
        key = (
            b"-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
            b"MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAhTWoJ3cA==\n-----END ENCRYPTED PRIVATE KEY-----\n"
        )
    if key is not None:
        (tmp_path / KEY_FILE).write_bytes(key)
    with pytest.raises(ServingError, match=f"^{FLAG}={tmp_path}: cannot serve with tls.crt and tls.key there: "):
        CertificateFiles(tmp_path, FLAG)


async def test_without_files_a_certificate_is_signed_that_needs_no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/nonexistent")
    names = await shown_names(await self_signed_context(FLAG))
    assert names == [os.uname().nodename, "localhost", "127.0.0.1", "::1"]


async def test_where_nothing_can_sign_the_extra_and_the_flag_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "cryptography.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(ServingError, match=r"memcached-operator\[secure\]'\. Or give one with --cert-dir\.$"):
        await self_signed_context(FLAG)


def test_a_self_signed_certificate_is_for_servers_alone_and_outlives_its_process() -> None:
    certificate = x509.load_pem_x509_certificate(self_signed(["a" * 63 + ".example", "10.0.0.1"], NOW))
    certificate.verify_directly_issued_by(certificate)
    assert certificate.not_valid_before_utc < NOW
    assert (certificate.not_valid_after_utc - NOW).days >= 3650
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [x509.oid.ExtendedKeyUsageOID.SERVER_AUTH]
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_the_signing_program_writes_pem_and_nothing_else() -> None:
    command = [sys.executable, "-m", "operator_runtime.serving.self_signed", "name.example"]
    finished = subprocess.run(command, capture_output=True, check=True)
    assert finished.stdout.startswith(b"-----BEGIN PRIVATE KEY-----")
    assert finished.stdout.rstrip().endswith(b"-----END CERTIFICATE-----")
    assert finished.stderr == b""
