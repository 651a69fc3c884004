"""The sidecar's script, run by a shell, with a real memcached as its judge, on files as a kubelet writes them."""

from __future__ import annotations

import datetime
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from memcached_operator.api.v1alpha1 import Auth, Spec, Tls
from memcached_operator.core.objects.pod_template import scripts_of
from memcached_operator.features.tls.secrets import options
from operator_runtime.testing.waiting import until
from tests.shells import SHELLS, words_of

MEMCACHED = shutil.which("memcached")
pytestmark = pytest.mark.skipif(MEMCACHED is None or not Path("/proc").is_dir(), reason="no memcached on the PATH")
KEEPS_ROOT = ("-u", "root") if os.getuid() == 0 else ()
Files = dict[str, bytes]
_DAY = datetime.timedelta(days=1)


def certificate(name: str, *, days: int = 1, begins: datetime.datetime | None = None) -> Files:
    """A Secret of TLS with a certificate that says so, valid for so many days, from the day before yesterday."""
    key, subject = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    begins = begins or datetime.datetime.now(datetime.UTC) - 2 * _DAY
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), 1, begins, begins + days * _DAY)
    signed = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    encoding = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return {"tls.crt": signed, "tls.key": key.private_bytes(*encoding), "ca.crt": signed}


ONE, OTHER, EXPIRED = certificate("one", days=9), certificate("other", days=9), certificate("expired")
PASSWORDS = {"password-file": b"user:password\n"}
TLS, AUTH = Tls(secretName="cache-tls"), Auth(secretName="cache-passwords")


class Pod:
    """A pod's folders, its sidecar, and its memcached."""

    def __init__(self, folder: Path, shell: str, *, version: str | None = "1.6.45") -> None:
        """
        Args:
            version: that memcached says it is, None for its own.
        """
        assert MEMCACHED is not None
        self._folder, self._processes = folder, list[subprocess.Popen[bytes]]()
        self._shell = words_of(shell)
        self._writes = 0
        for each in ("etc", "proc", "bin"):
            (folder / each).mkdir()
        self._program = folder / "bin" / "memcached"
        self._is_logged = f'[ "$1" = --version ] && echo "memcached {version}" && exit\n' if version else ""
        self._program.write_text(f'#!/bin/sh\n{self._is_logged}exec {MEMCACHED} "$@"\n')
        self._program.chmod(0o755)
        self.environment = os.environ | {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}

    def write(self, name: str, files: Files) -> None:
        """A Secret as the kubelet writes it into a volume: a folder of its own, then one link that changes.

        The keys' links come before it, and lead nowhere until then: whoever looks sees the former keys or the new ones.
        """
        self._writes += 1
        volume = self._folder / "etc" / name
        written = volume / f"..{self._writes}"
        written.mkdir(parents=True)
        for key, text in files.items():
            (written / key).write_bytes(text)
        for key in files:
            if not (volume / key).is_symlink():
                (volume / key).symlink_to(f"..data/{key}")
        (volume / "..new").symlink_to(written.name)
        (volume / "..new").rename(volume / "..data")
        for link in volume.glob("[!.]*"):
            if link.name not in files:
                link.unlink()

    def goes_back_while_judged(self, name: str) -> None:
        """Have the kubelet bring the first write of a Secret again, once memcached has refused to start by another."""
        volume = self._folder / "etc" / name
        goes_back = f"ln -s ..1 {volume}/..new && mv -T {volume}/..new {volume}/..data"
        first = f'[ "$(readlink {volume}/..data)" = ..1 ] || {{ {MEMCACHED} "$@"; {goes_back}; exit 1; }}\n'
        self._program.write_text(f'#!/bin/sh\n{self._is_logged}{first}exec {MEMCACHED} "$@"\n')

    def start(self, tls: Tls | None, auth: Auth | None, user: int | None = None) -> subprocess.Popen[bytes]:
        """Start the sidecar's container, as the kubelet does also when it ended.

        Args:
            user: as whom it runs, None for whoever runs the tests.
        """
        here = dict(scripts_of(Spec(tls=Tls(secretName="a"))))["reloader.sh"]
        for in_pod, in_folder in (
            ("/etc/memcached", f"{self._folder}/etc"),
            ("/dev/shm/reloader", f"{self._folder}/state"),
            ("/dev/termination-log", f"{self._folder}/told"),
            ("processes=/proc", f"processes={self._folder}/proc"),
            ("every_s=5", "every_s=0.02"),
            ("sleep 0.1", "sleep 0.02"),
        ):
            assert in_pod in here
            here = here.replace(in_pod, in_folder)
        (self._folder / "told").write_text("")
        names = [part.secretName if part else "" for part in (tls, auth)]
        words = [*self._shell, "-c", here, "reloader.sh", *names, *self._options(tls, auth)]
        process = subprocess.Popen(
            words, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, user=user
        )
        self._processes.append(process)
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        return process

    def ends(self, tls: Tls | None, auth: Auth | None, user: int | None = None) -> str:
        """What a sidecar says that ends."""
        process = self.start(tls, auth, user)
        assert process.wait(60) == 1
        return self.termination_message

    def serve(self, tls: Tls | None, auth: Auth | None) -> int:
        """Start the memcached of the pod; its port."""
        assert MEMCACHED is not None
        logged = self._folder / "port"
        server = subprocess.Popen(
            [MEMCACHED, "-l", "127.0.0.1", "-p", "-1", *self._options(tls, auth)],
            env=self.environment | {"MEMCACHED_PORT_FILENAME": str(logged)},
            stderr=subprocess.DEVNULL,
        )
        self._processes.append(server)
        until("memcached does not listen", logged.is_file)
        self._show(server.pid, "memcached")
        return int(logged.read_text().split()[-1])

    def runs(self, name: str, *, ends: bool = True) -> subprocess.Popen[bytes]:
        """A process that a sidecar sees in its pod.

        Args:
            ends: a hangup ends it.
        """
        take = _take_hangups if ends else _ignore_hangups
        process = subprocess.Popen(["sleep", "3600"], preexec_fn=take)  # noqa: PLW1509
        self._processes.append(process)
        self._show(process.pid, name)
        return process

    def gone(self, process: subprocess.Popen[bytes]) -> None:
        """That process has ended."""
        shutil.rmtree(self._folder / "proc" / str(process.pid))

    def opened_to_all(self) -> None:
        """Its folders may be used by a sidecar of any user."""
        for each in (self._folder, self._folder / "bin"):
            each.chmod(0o777)
        (self._folder / "told").write_text("")
        (self._folder / "told").chmod(0o666)

    def clock_shows(self, now: str) -> None:
        """A time as YYYYMMDDHHMMSS, "" where there is no clock."""
        program = self._folder / "bin" / "date"
        program.write_text(f"#!/bin/sh\necho {now}\n")
        program.chmod(0o755)

    def _show(self, pid: int, name: str) -> None:
        (self._folder / "proc" / str(pid)).mkdir()
        (self._folder / "proc" / str(pid) / "comm").write_text(f"{name}\n")

    def _options(self, tls: Tls | None, auth: Auth | None) -> list[str]:
        here = (each.replace("/etc/memcached", f"{self._folder}/etc") for each in options(tls, auth))
        return [*here, *KEEPS_ROOT]

    @property
    def ready(self) -> bool:
        """Whether the probe lets memcached start."""
        return (self._folder / "state" / "ready").exists()

    @property
    def termination_message(self) -> str:
        """What the status of the container that ended has."""
        return (self._folder / "told").read_text()

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()


def _take_hangups() -> None:
    """As under nohup they are ignored, which a program inherits."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def _ignore_hangups() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make(shell: str) -> Iterator[Callable[..., Pod]]:
    pods: list[Pod] = []
    # The path of a socket in it may have 107 characters.
    with tempfile.TemporaryDirectory(prefix="reloader-") as folder:

        def make(**given: Any) -> Pod:
            pods.append(Pod(Path(folder), shell, **given))
            return pods[-1]

        yield make
        for pod in pods:
            pod.close()


@pytest.fixture
def pod(make: Callable[..., Pod]) -> Pod:
    return make()


def until_logged(process: subprocess.Popen[bytes], words: str) -> None:
    """Wait until a sidecar says that."""
    assert process.stdout is not None
    stdout, logged = process.stdout, ""

    def is_logged() -> bool:
        nonlocal logged
        logged += (stdout.read() or b"").decode()
        return words in logged

    until(f"{words!r} was not said", is_logged)


BAD_KEY = "key tls.key of the Secret cache-tls: Error loading the key: "
BAD: list[tuple[Files | None, Files | None, str]] = [
    ({}, None, "SecretNotFound: there is no Secret cache-tls with the key tls.crt"),
    (None, {}, "SecretNotFound: there is no Secret cache-passwords with the key password-file"),
    (
        {"tls.crt": ONE["tls.crt"]},
        None,
        "CertificateInvalid: the Secret cache-tls has no key tls.key, or nothing in it",
    ),
    (ONE | {"tls.crt": b""}, None, "CertificateInvalid: the Secret cache-tls has no key tls.crt, or nothing in it"),
    (None, {"passwords": b"a:b"}, "PasswordsInvalid: the Secret cache-passwords has no key password-file, or nothing"),
    (ONE | {"tls.crt": b"junk"}, None, "CertificateInvalid: key tls.crt of the Secret cache-tls: Error loading the"),
    (ONE | {"tls.key": b"junk"}, None, f"CertificateInvalid: {BAD_KEY}"),
    (ONE | {"tls.key": OTHER["tls.key"]}, None, f"CertificateInvalid: {BAD_KEY}"),
]


@pytest.mark.parametrize(("tls", "auth", "problem"), BAD)
def test_what_is_wrong_with_a_secret_is_told_with_its_reason_and_its_key(
    pod: Pod, tls: Files | None, auth: Files | None, problem: str
) -> None:
    for name, files in (("tls", tls), ("auth", auth)):
        if files is not None:
            pod.write(name, files)
    termination_message = pod.ends(None if tls is None else TLS, None if auth is None else AUTH)
    assert termination_message.startswith(problem)
    assert termination_message.count("\n") == 1
    assert not pod.ready


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"tls.crt": ONE["tls.crt"], "tls.key": ONE["tls.key"]}, "the Secret cache-tls has no key ca.crt"),
        (ONE | {"ca.crt": b"junk"}, "key ca.crt of the Secret cache-tls: Error loading the CA certificate: "),
    ],
)
def test_the_authority_of_clients_is_desired_where_they_show_certificates(pod: Pod, files: Files, problem: str) -> None:
    pod.write("tls", files)
    assert problem in pod.ends(Tls(secretName="cache-tls", clientAuth="Require"), None)
    pod.start(TLS, None)
    until("it is not ready without", lambda: pod.ready)


LONG = "line %d has %d bytes: memcached takes at most 254"
LINE = "must be user:password, without a space in the user"
PASSWORD_FILES: list[tuple[bytes, str]] = [
    (b"a:b", ""),
    (b"a:b\r\nc:d\r\n", ""),
    (b"".join(b"user%d:x\n" % number for number in range(8)), ""),
    (b"".join(b"user%d:x\n" % number for number in range(9)), "there is a line 9: memcached takes at most 8"),
    (b"a:b\n\nc:d\n", f"line 2 {LINE}"),
    (b"# users\na:b\n", f"line 1 {LINE}"),
    (b"a:\n", f"line 1 {LINE}"),
    (b"a:\r\n", f"line 1 {LINE}"),
    (b"a b:c\n", f"line 1 {LINE}"),
    (b"a:b\nc\nd:e\n", f"line 2 {LINE}"),
    # memcached cuts a line after 255 bytes, its end included, and takes the rest for another one.
    (b"a:%b\nb:y\n" % (b"x" * 252), ""),
    (b"a:%b\r\nb:y\n" % (b"x" * 251), ""),
    (b"a:%s\nb:y\n" % ("ü" * 126).encode(), ""),
    (b"a:%b\nb:y\n" % (b"x" * 253), LONG % (1, 255)),
    (b"a:b\na:%b" % (b"x" * 253), LONG % (2, 255)),
    (b"a:%b\r\nb:y\n" % (b"x" * 252), LONG % (1, 255)),
    (b"a:%s\nb:y\n" % ("ü" * 127).encode(), LONG % (1, 256)),
    (b"%b:b\n" % (b"u" * 300), LONG % (1, 302)),
    (b"a:b\rc:d\n", "line 1 has a carriage return in it, at which memcached ends the password"),
    (b"a:b\r\r\nc:d\n", "line 1 has a carriage return in it, at which memcached ends the password"),
    (b"a:b\0c\nd:e\n", "there is a NUL byte in it, at which memcached ends the file"),
    (b"a:b\nd:e\n\0", "there is a NUL byte in it, at which memcached ends the file"),
]


@pytest.mark.parametrize(("text", "problem"), PASSWORD_FILES)
def test_each_line_of_passwords_is_judged_and_none_is_shown(pod: Pod, text: bytes, problem: str) -> None:
    pod.write("auth", {"password-file": text})
    if problem:
        termination_message = pod.ends(None, AUTH)
        assert termination_message == f"PasswordsInvalid: key password-file of the Secret cache-passwords: {problem}\n"
    else:
        pod.start(None, AUTH)
        until("it is not ready", lambda: pod.ready)


def test_a_problem_ends_the_sidecar_once_and_it_waits_then_until_the_secret_is_mended(pod: Pod) -> None:
    pod.write("tls", {})
    pod.ends(TLS, None)
    again = pod.start(TLS, None)
    with pytest.raises(subprocess.TimeoutExpired):
        again.wait(0.5)
    assert pod.termination_message == ""
    pod.write("tls", ONE | {"tls.key": b"junk"})
    assert again.wait(60) == 1
    assert pod.termination_message.startswith("CertificateInvalid: key tls.key")
    again = pod.start(TLS, None)
    pod.write("tls", ONE)
    until_logged(again, "The Secrets are good: memcached may start.")
    assert pod.ready


def test_what_is_written_while_it_is_judged_is_judged_anew(pod: Pod) -> None:
    pod.write("tls", ONE)
    pod.write("tls", ONE | {"tls.key": b"junk"})
    pod.goes_back_while_judged("tls")
    sidecar = pod.start(TLS, None)
    until_logged(sidecar, "The Secrets are good: memcached may start.")
    assert (sidecar.poll(), pod.termination_message) == (None, "")


@pytest.mark.parametrize("version", ["1.5.22", "1.6.39"])
def test_a_memcached_that_takes_no_renewed_certificate_is_told(make: Callable[..., Pod], version: str) -> None:
    pod = make(version=version)
    pod.write("tls", ONE)
    pod.write("auth", PASSWORDS)
    assert pod.ends(TLS, AUTH) == (
        f"ReloadUnsupported: memcached {version} takes no renewed certificate while it runs: use 1.6.40 or newer, or "
        "spec.tls.reload: Restart\n"
    )
    pod.start(None, AUTH)
    until("passwords alone want no newer one", lambda: pod.ready)


@pytest.mark.parametrize("version", ["1.6.40", "1.6.45_beta1", "1.7.0", "2.0.1"])
def test_newer_ones_are_taken_and_expired_certificates_too(make: Callable[..., Pod], version: str) -> None:
    pod = make(version=version)
    pod.write("tls", EXPIRED)
    pod.start(TLS, None)
    until("it is not ready", lambda: pod.ready)


def query(port: int, line: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), 10) as plain:
        plain.sendall(line)
        return plain.recv(100)


def logs_in(port: int, words: bytes) -> bool:
    return query(port, b"set login 0 0 %d\r\n%s\r\n" % (len(words), words)) == b"STORED\r\n"


def test_renewed_passwords_are_taken_over_and_bad_ones_are_not(pod: Pod) -> None:
    pod.write("auth", PASSWORDS)
    sidecar = pod.start(None, AUTH)
    until("it is not ready", lambda: pod.ready)
    port = pod.serve(None, AUTH)
    before = socket.create_connection(("127.0.0.1", port), 10)
    before.sendall(b"set login 0 0 13\r\nuser password\r\n")
    assert before.recv(100) == b"STORED\r\n"
    pod.write("auth", {"password-file": b"user password\n"})
    until_logged(
        sidecar, "The Secrets changed, and memcached keeps what it has: PasswordsInvalid: key password-file of the"
    )
    assert logs_in(port, b"user password")
    pod.write("auth", {})
    until_logged(sidecar, "memcached keeps what it has: SecretNotFound: there is no Secret cache-passwords")
    pod.write("auth", {"password-file": b"user:other\n"})
    until_logged(sidecar, "The Secrets changed: memcached reloads them.")
    until("the new password is refused", lambda: logs_in(port, b"user other"))
    assert not logs_in(port, b"user password")
    before.sendall(b"mn\r\n")
    assert before.recv(100) == b"MN\r\n", "a connection that had logged in lives on"
    before.close()


@pytest.mark.parametrize(("longest", "users"), [(254, {"a", "b"}), (255, {"a"}), (256, set())])
def test_memcached_loses_users_by_a_line_that_is_one_byte_longer_than_what_is_judged_good(
    pod: Pod, longest: int, users: set[str]
) -> None:
    passwords = {"a": "x" * (longest - 2), "b": "y"}
    pod.write("auth", {"password-file": "".join(f"{user}:{passwords[user]}\n" for user in passwords).encode()})
    port = pod.serve(None, AUTH)
    assert {user for user in passwords if logs_in(port, f"{user} {passwords[user]}".encode())} == users


def served(port: int) -> x509.Certificate:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    plain = socket.create_connection(("127.0.0.1", port), 10)
    with context.wrap_socket(plain) as connection:
        return x509.load_der_x509_certificate(connection.getpeercert(binary_form=True) or b"")


def name_of(found: x509.Certificate) -> str:
    return found.subject.rfc4514_string()


def _is_new() -> bool:
    logged = subprocess.run([MEMCACHED or "false", "--version"], capture_output=True, text=True, check=False).stdout
    return [int(each) for each in logged.split()[-1].split(".")[:3]] >= [1, 6, 40] if logged else False


@pytest.mark.skipif(not _is_new(), reason="the memcached on the PATH is older than 1.6.40")
def test_a_renewed_certificate_is_served_to_new_connections_and_a_bad_one_is_not(make: Callable[..., Pod]) -> None:
    pod = make(version=None)
    pod.write("tls", ONE)
    sidecar = pod.start(TLS, None)
    until("it is not ready", lambda: pod.ready)
    port = pod.serve(TLS, None)
    assert name_of(served(port)) == "CN=one"
    pod.write("tls", OTHER | {"tls.key": ONE["tls.key"]})
    until_logged(sidecar, "memcached keeps what it has: CertificateInvalid: key tls.key of the Secret cache-tls")
    assert name_of(served(port)) == "CN=one"
    pod.write("tls", OTHER)
    until_logged(sidecar, "The Secrets changed: memcached reloads them.")
    until("the new certificate is not served", lambda: name_of(served(port)) == "CN=other")


def test_only_processes_named_memcached_are_signalled(pod: Pod) -> None:
    server, *others = (pod.runs(name) for name in ("memcached", "memcached2", "sh"))
    pod.write("auth", PASSWORDS)
    pod.start(None, AUTH)
    until("it is not ready", lambda: pod.ready)
    pod.write("auth", PASSWORDS)
    assert server.wait(60) == -signal.SIGHUP
    assert [process.poll() for process in others] == [None, None]


def test_a_sidecar_that_is_started_again_beside_its_server_stays_ready_whatever_the_secrets_are(pod: Pod) -> None:
    pod.write("auth", PASSWORDS)
    first = pod.start(None, AUTH)
    until("it is not ready", lambda: pod.ready)
    pod.serve(None, AUTH)
    first.kill()
    pod.write("auth", {})
    second = pod.start(None, AUTH)
    until_logged(second, "memcached keeps what it has: SecretNotFound")
    assert pod.ready
    second.kill()
    pod.write("auth", PASSWORDS)
    until_logged(pod.start(None, AUTH), "memcached reloads them")  # it may have missed what changed meanwhile


def test_where_no_server_runs_any_more_it_judges_anew_before_one_is_started(pod: Pod) -> None:
    pod.write("auth", PASSWORDS)
    first = pod.start(None, AUTH)
    until("it is not ready", lambda: pod.ready)
    first.kill()
    pod.write("auth", {})
    assert pod.ends(None, AUTH).startswith("SecretNotFound")
    assert not pod.ready


@pytest.mark.skipif(os.getuid() != 0, reason="only root can run two processes of which one may not signal the other")
def test_a_server_that_may_not_be_signalled_is_told_once_and_again_when_that_is_over(pod: Pod) -> None:
    nobody = 65534
    pod.opened_to_all()
    pod.write("auth", PASSWORDS)
    first = pod.start(None, AUTH, nobody)
    until("it is not ready", lambda: pod.ready)
    server = pod.runs("memcached")
    pod.write("auth", PASSWORDS)
    assert first.wait(60) == 1
    assert pod.termination_message == (
        "ReloadFailed: memcached keeps what the Secrets had before, as the container reloader may not signal it: both "
        "must run as the same user\n"
    )
    second = pod.start(None, AUTH, nobody)
    with pytest.raises(subprocess.TimeoutExpired):
        second.wait(0.5)
    assert pod.ready
    server.kill()
    server.wait()
    pod.gone(server)
    assert second.wait(60) == 1, "what was told is over"
    assert pod.termination_message.strip() == ""


VERIFYING = Tls(secretName="cache-tls", clientAuth="Require")
REMOVED = "AuthorityRemoved: memcached trusts a CA that is no longer in ca.crt of the Secret cache-tls\n"


def test_a_ca_that_was_taken_out_is_told_for_as_long_as_the_server_trusts_it(pod: Pod) -> None:
    one, both, other = (
        ONE | {"ca.crt": each} for each in (ONE["ca.crt"], ONE["ca.crt"] + OTHER["ca.crt"], OTHER["ca.crt"])
    )
    pod.write("tls", one)
    sidecar = pod.start(VERIFYING, None)
    until("it is not ready", lambda: pod.ready)
    server = pod.runs("memcached", ends=False)
    pod.write("tls", both)
    until_logged(sidecar, "The Secrets changed: memcached reloads them.")
    pod.write("tls", other | {"ca.crt": b"junk"})
    until_logged(sidecar, "memcached keeps what it has: CertificateInvalid: key ca.crt")
    pod.write("tls", other)
    assert sidecar.wait(60) == 1
    assert pod.termination_message == REMOVED
    again = pod.start(VERIFYING, None)
    until_logged(again, "The Secrets changed: memcached reloads them.")
    pod.write("tls", other)
    until_logged(again, "The Secrets changed: memcached reloads them.")
    assert again.poll() is None, "it is told once"
    pod.write("tls", both)
    assert again.wait(60) == 1, "it is put back"
    assert pod.termination_message.strip() == ""
    pod.write("tls", other)
    assert pod.ends(VERIFYING, None) == REMOVED
    last = pod.start(VERIFYING, None)
    until_logged(last, "The Secrets changed: memcached reloads them.")
    pod.runs("memcached", ends=False)
    server.kill()
    server.wait()
    pod.gone(server)
    assert last.wait(60) == 1, "a server that starts trusts what is there alone"
    assert pod.termination_message.strip() == ""


def spaced(text: bytes) -> bytes:
    """Lines as OpenSSL takes them, too: with blanks in and after them, of another length, with line ends of Windows."""
    begin, *content, end = text.decode().splitlines()
    joined = "".join(content)
    lines = [f"{joined[at : at + 20]} {joined[at + 20 : at + 48]}\t" for at in range(0, len(joined), 48)]
    return "\r\n".join([f"{begin}  ", *lines, f"{end} \t", ""]).encode()


def reloads_twice(pod: Pod, sidecar: subprocess.Popen[bytes], files: Files) -> None:
    """That a sidecar goes on with these: it does not end after the first time."""
    for _ in range(2):
        pod.write("tls", files)
        until_logged(sidecar, "The Secrets changed: memcached reloads them.")


FORMS = [
    spaced(ONE["ca.crt"]) + OTHER["ca.crt"],
    OTHER["ca.crt"] + ONE["ca.crt"],
    ONE["ca.crt"] + OTHER["ca.crt"] + ONE["ca.crt"],
    "# Zertifikate für Läden\n".encode() + ONE["ca.crt"] + b"subject: CN=other\n" + OTHER["ca.crt"].rstrip(),
    (ONE["ca.crt"] + OTHER["ca.crt"]).replace(b" CERTIFICATE", b" X509 CERTIFICATE"),
]


@pytest.mark.parametrize("form", FORMS)
def test_the_same_certificates_in_another_form_are_the_same_authorities(pod: Pod, form: bytes) -> None:
    pod.write("tls", ONE | {"ca.crt": ONE["tls.key"] + ONE["ca.crt"] + OTHER["ca.crt"]})
    sidecar = pod.start(VERIFYING, None)
    until("it is not ready", lambda: pod.ready)
    pod.runs("memcached", ends=False)
    reloads_twice(pod, sidecar, ONE | {"ca.crt": form})
    pod.write("tls", ONE)
    assert sidecar.wait(60) == 1, "the other one is taken out"
    assert pod.termination_message == REMOVED


CENTURY = datetime.datetime(2049, 12, 31, 12, tzinfo=datetime.UTC)
ENDS = [
    (datetime.datetime(2030, 5, 6, tzinfo=datetime.UTC), "20300506000001", True),
    (datetime.datetime(2030, 5, 6, tzinfo=datetime.UTC), "20300505235959", False),
    (datetime.datetime(1999, 5, 6, tzinfo=datetime.UTC), "20300506000000", True),
    (CENTURY, "20491231120001", True),
    (CENTURY, "20491231115959", False),
    (CENTURY + _DAY, "20500101120001", True),
    (CENTURY + _DAY, "20500101115959", False),
    (CENTURY, "", False),
]


@pytest.mark.parametrize(("ends", "now", "is_over"), ENDS)
def test_a_server_may_go_on_with_a_ca_that_was_taken_out_once_it_has_expired(
    pod: Pod, ends: datetime.datetime, now: str, is_over: bool
) -> None:
    old, lasting = certificate("old", days=9, begins=ends - 9 * _DAY), certificate("lasting", days=36_500)
    pod.clock_shows(now)
    pod.write("tls", ONE | {"ca.crt": old["ca.crt"] + lasting["ca.crt"]})
    sidecar = pod.start(VERIFYING, None)
    until("it is not ready", lambda: pod.ready)
    pod.runs("memcached", ends=False)
    without = ONE | {"ca.crt": lasting["ca.crt"]}
    if is_over:
        reloads_twice(pod, sidecar, without)
        return
    pod.write("tls", without)
    assert sidecar.wait(60) == 1
    assert pod.termination_message == REMOVED
    pod.clock_shows("99991231235959")
    assert pod.ends(VERIFYING, None).strip() == "", "it is over as soon as the CA has expired"


def test_no_authority_is_looked_at_where_clients_show_no_certificate(pod: Pod) -> None:
    pod.write("tls", ONE)
    sidecar = pod.start(TLS, None)
    until("it is not ready", lambda: pod.ready)
    pod.runs("memcached", ends=False)
    pod.write("tls", OTHER)
    until_logged(sidecar, "The Secrets changed: memcached reloads them.")
    pod.write("tls", {each: OTHER[each] for each in ("tls.crt", "tls.key")})
    until_logged(sidecar, "The Secrets changed: memcached reloads them.")
    assert sidecar.poll() is None


def test_a_sidecar_that_was_killed_knows_what_the_server_trusted_and_tells_again(pod: Pod) -> None:
    pod.write("tls", ONE)
    first = pod.start(VERIFYING, None)
    until("it is not ready", lambda: pod.ready)
    pod.runs("memcached", ends=False)
    pod.write("tls", ONE)
    until_logged(first, "The Secrets changed: memcached reloads them.")
    first.kill()
    pod.write("tls", ONE | {"ca.crt": OTHER["ca.crt"]})
    assert pod.ends(VERIFYING, None) == REMOVED
    second = pod.start(VERIFYING, None)
    until_logged(second, "The Secrets changed: memcached reloads them.")
    second.kill()
    second.wait()
    assert pod.ends(VERIFYING, None) == REMOVED, "the status has what the last container said"
