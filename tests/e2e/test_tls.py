"""TLS and passwords, tried from outside: what is refused, who is let in, and what a renewal costs.

The certificates are made on the spot, as cert-manager would write them.
"""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lab.kubectl import LabError
from lab.node.node import Node
from operator_runtime.testing.waiting import eventually
from tests.certificates import DAY, Authority, Pair, secret
from tests.e2e.node_cluster import (
    MEMCACHED_PORT,
    OPERATOR,
    SYSTEM,
    fresh_namespace,
    incarnations,
    pod_address,
)
from tests.e2e.secure_client import Load, Login, answer, context, fingerprint, plain, secured
from tests.integration.conftest import memcached
from tests.kubectl_in_namespace import Kubectl

NAME, SIZE, KEYS = "cache", 6, 10_000
NAMESPACE = "e2e-tls"
TLS_SECRET, PASSWORDS = "cache-tls", "cache-passwords"
OLD, NEW = Login("app", "first"), Login("app", "second")
# The kubelet looks at a pod's Secrets once a minute or so, and at once where the pod changes. The server follows.
SYNCED_WITHIN_S = 120.0
LISTEN = "0A"
# A command that is shorter than any login has the connection closed.
REFUSED = (b"CLIENT_ERROR unauthenticated\r\n", b"")
COMMANDS = {
    "version": b"version\r\n",
    "stats": b"stats\r\n",
    "get": b"get key-00000\r\n",
    "gat": b"gat 60 key-00000\r\n",
    "mg": b"mg key-00000 v\r\n",
    "mn": b"mn\r\n",
    "delete": b"delete key-00000\r\n",
    "incr": b"incr key-00000 1\r\n",
    "touch": b"touch key-00000 60\r\n",
    "flush_all": b"flush_all\r\n",
    "cache_memlimit": b"cache_memlimit 8\r\n",
    "refresh_certs": b"refresh_certs\r\n",
    "verbosity": b"verbosity 2\r\n",
    "shutdown": b"shutdown\r\n",
}

pytestmark = pytest.mark.timeout(600)


@dataclass(slots=True)
class Scene:
    """Six servers with TLS, required client certificates and passwords.

    Attributes:
        names: of the servers, by address.
        serves: what they serve now.
        shown: what clients show.
    """

    node: Node
    kubectl: Kubectl
    authority: Authority
    names: Mapping[str, str]
    serves: Pair
    shown: Pair

    @property
    def by(self) -> ssl.SSLContext:
        """Of a client that is let in."""
        return context(self.authority.pem, self.shown)

    @property
    def first(self) -> tuple[str, str]:
        """Address and name of one server."""
        return next(iter(self.names.items()))


@pytest.fixture(scope="module")
def scene(node: Node, system: Kubectl) -> Iterator[Scene]:
    """A namespace that admits restricted pods alone, the Secrets, and the servers."""
    with fresh_namespace(node, NAMESPACE) as kubectl:
        node.kubectl("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
        authority = Authority()
        serves = issue(authority)
        kubectl.apply(secret(TLS_SECRET, serves.files), passwords(OLD))
        tls = {"secretName": TLS_SECRET, "clientAuth": "Require"}
        auth = {"secretName": PASSWORDS}
        kubectl.apply(memcached(NAME, SIZE, workload="StatefulSet", tls=tls, auth=auth))
        kubectl.wait(f"mcd/{NAME}", "condition=Ready")
        names = {
            pod_address(kubectl, f"{NAME}-{each}"): f"{NAME}-{each}.{NAME}.{NAMESPACE}.svc" for each in range(SIZE)
        }
        yield Scene(node, kubectl, authority, names, serves, authority.issue("client"))


def issue(authority: Authority) -> Pair:
    """A certificate with the names that docs/tls.md asks for."""
    return authority.issue(f"{NAME}.{NAMESPACE}.svc", f"*.{NAME}.{NAMESPACE}.svc")


def passwords(*logins: Login) -> dict[str, object]:
    """The Secret of passwords."""
    return secret(PASSWORDS, {"password-file": "".join(f"{each.line}\n" for each in logins).encode()})


def test_plain_text_is_refused(scene: Scene) -> None:
    with plain(scene.first[0]) as connection:
        received = b""
        with suppress(ConnectionError):
            received = answer(connection, b"version\r\n")
    # A TLS alert at most.
    assert not received.startswith((b"VERSION", b"ERROR", b"CLIENT_ERROR")), received


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
def test_tls_1_1_is_refused_and_1_2_is_not(scene: Scene) -> None:
    address, name = scene.first
    old = scene.by
    old.set_ciphers("DEFAULT@SECLEVEL=0")
    old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError, match=r"(?i)protocol.version"), secured(address, old, name):
        pass
    good = scene.by
    good.maximum_version = ssl.TLSVersion.TLSv1_2
    with secured(address, good, name) as connection:
        assert connection.version() == "TLSv1.2"
        # Whatever the OpenSSL of the image is set to, memcached itself says so.
        assert answer(connection, OLD.command) == b"STORED\r\n"
        assert b"STAT ssl_min_version tlsv1.2\r\n" in answer(connection, b"stats settings\r\n")


def test_a_client_is_let_in_by_a_certificate_of_the_authority_alone(scene: Scene) -> None:
    address, name = scene.first
    of_another = context(scene.authority.pem, Authority("another").issue("client"))
    for refused in (context(scene.authority.pem), of_another):
        with pytest.raises((ssl.SSLError, ConnectionError)), secured(address, refused, name) as connection:
            # By TLS 1.3 a client learns of it when it reads.
            raise ConnectionError if answer(connection, b"version\r\n") == b"" else AssertionError("it is let in")
    with secured(address, scene.by, name) as connection:
        assert answer(connection, OLD.command) == b"STORED\r\n"
        assert answer(connection, b"version\r\n").startswith(b"VERSION ")


def test_a_server_of_another_authority_is_refused_by_its_clients_and_each_name_is_in_the_certificate(
    scene: Scene,
) -> None:
    with (
        pytest.raises(ssl.SSLCertVerificationError),
        secured(scene.first[0], context(Authority("another").pem, scene.shown), scene.first[1]),
    ):
        pass
    for address, name in scene.names.items():
        for each in (name, f"{NAME}.{NAMESPACE}.svc"):
            with secured(address, scene.by, each):
                pass
    with pytest.raises(ssl.SSLCertVerificationError), secured(scene.first[0], scene.by, f"other.{NAMESPACE}.svc"):
        pass


def test_a_server_listens_on_one_port_alone(scene: Scene) -> None:
    for each in range(SIZE):
        pid = scene.node.container_pid(NAMESPACE, f"{NAME}-{each}", "memcached")
        listening = {port for kind in ("tcp", "tcp6") for port, state in _sockets(pid, kind) if state == LISTEN}
        assert listening == {MEMCACHED_PORT}
        assert [*_sockets(pid, "udp"), *_sockets(pid, "udp6")] == []


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_without_the_right_password_every_command_is_refused(scene: Scene, command: bytes) -> None:
    address, name = scene.first
    with secured(address, scene.by, name) as connection:
        assert answer(connection, command) in REFUSED
    with secured(address, scene.by, name) as connection:
        assert answer(connection, Login(OLD.user, "wrong").command) == b"CLIENT_ERROR authentication failure\r\n"
        assert answer(connection, command) in REFUSED


def test_a_renewal_costs_no_key_no_pod_and_no_connection(scene: Scene) -> None:
    load = Load(scene.names, scene.by, OLD, KEYS)
    load.fill()
    before, restarts = incarnations(scene.kubectl), _restarts(scene.kubectl)
    renewed = issue(scene.authority)
    with ExitStack() as stack:
        kept = {name: stack.enter_context(secured(address, scene.by, name)) for address, name in scene.names.items()}
        for connection in kept.values():
            assert answer(connection, OLD.command) == b"STORED\r\n"
        watches = {name: Renewal(scene, address, name, renewed) for address, name in scene.names.items()}
        stack.enter_context(load.running())
        eventually(lambda: load.rounds, lambda rounds: rounds >= 1)
        scene.kubectl.apply(secret(TLS_SECRET, renewed.files), passwords(NEW))
        for each in watches.values():
            stack.enter_context(each)
        _sync(scene.kubectl)
        for name, each in watches.items():
            assert each.ended.wait(SYNCED_WITHIN_S), f"{name}: {each.seen}"
        begun = load.rounds
        eventually(lambda: load.rounds, lambda rounds: rounds >= begun + 2)
        for connection in kept.values():
            assert answer(connection, b"version\r\n").startswith(b"VERSION "), "an old connection does not live on"
    assert (load.missed, load.errors) == ([], [])
    for address, name in scene.names.items():
        with secured(address, scene.by, name) as connection:
            assert answer(connection, OLD.command) == b"CLIENT_ERROR authentication failure\r\n"
    assert incarnations(scene.kubectl) == before
    assert _restarts(scene.kubectl) == restarts
    assert dict.fromkeys(restarts, 0) == restarts
    scene.serves = renewed


class Renewal:
    """Looks at one server until it serves what is new, beside the files that the kubelet writes for it.

    Attributes:
        ended: the files are new, and a new connection is served so and lets the new password in.
        seen: what is missing.
    """

    def __init__(self, scene: Scene, address: str, name: str, renewed: Pair) -> None:
        self._scene, self._address, self._name = scene, address, name
        pid = scene.node.container_pid(NAMESPACE, name.partition(".")[0], "memcached")
        self._files = {
            Path(f"/proc/{pid}/root/etc/memcached/tls/tls.crt"): renewed.pem,
            Path(f"/proc/{pid}/root/etc/memcached/auth/password-file"): f"{NEW.line}\n".encode(),
        }
        self._der = renewed.der
        self._by = scene.by
        self.ended, self.seen = threading.Event(), "the kubelet has not written what is new"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)

    def __enter__(self) -> Renewal:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _poll(self) -> None:
        while not self._stop.wait(0.2):
            if any(path.read_bytes() != content for path, content in self._files.items()):
                continue
            self.seen = "the server does not serve what the kubelet has written"
            if self._is_served():
                self.ended.set()
                return

    def _is_served(self) -> bool:
        with secured(self._address, self._by, self._name) as connection:
            if connection.getpeercert(binary_form=True) != self._der:
                return False
            return answer(connection, NEW.command) == b"STORED\r\n"


def test_the_operator_sees_the_certificates_from_outside_and_has_no_right_to_secrets(scene: Scene) -> None:
    account = f"--as=system:serviceaccount:{SYSTEM}:{OPERATOR}"
    for verb in ("get", "list", "watch"):
        assert scene.node.kubectl("auth", "can-i", verb, "secrets", "-A", account, check=False).stdout.strip() == "no"
    found = _condition(scene.kubectl, NAME, "Serving", lambda each: each["reason"] == "CredentialsMissing")
    assert "--server-credentials" in found["message"]


def test_servers_wait_for_a_secret_that_is_missing_or_wrong_and_start_when_it_is_right(scene: Scene) -> None:
    name = "later"
    kubectl, serves = scene.kubectl, scene.authority.issue(f"later.{NAMESPACE}.svc")
    kubectl.apply(memcached(name, 1, tls={"secretName": "later-tls"}))
    found = _condition(kubectl, name, "Degraded", lambda each: each["reason"] == "SecretNotFound")
    assert "later-tls" in found["message"]
    kubectl.apply(secret("later-tls", {"tls.crt": serves.pem}))
    found = _condition(kubectl, name, "Degraded", lambda each: each["reason"] == "CertificateInvalid", sync=True)
    assert "tls.key" in found["message"]
    expired = scene.authority.issue(f"later.{NAMESPACE}.svc", begins=-30 * DAY, ends=-DAY)
    kubectl.apply(secret("later-tls", expired.files))
    found = _condition(kubectl, name, "Serving", lambda each: each["reason"] == "CertificateExpired", sync=True)
    assert found["status"] == "False"
    kubectl.wait(f"mcd/{name}", "condition=Ready")
    (address,) = {pod["status"]["podIP"] for pod in _pods(kubectl, name)}
    kubectl.apply(secret("later-tls", serves.files))
    _condition(kubectl, name, "Serving", lambda each: each["reason"] == "Answering", sync=True)
    assert fingerprint(address, context(scene.authority.pem), f"later.{NAMESPACE}.svc")
    (pod,) = _pods(kubectl, name)
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
    (reloader,) = pod["status"]["initContainerStatuses"]
    assert reloader["restartCount"] <= 2, "once for each different problem"


def test_a_renewed_secret_that_is_wrong_leaves_the_servers_as_they_are(scene: Scene) -> None:
    address, name = scene.first
    before = fingerprint(address, scene.by, name)
    kubectl = scene.kubectl
    kubectl.apply(secret(TLS_SECRET, {**scene.serves.files, "tls.key": Authority("x").issue("x").key_pem}))

    def last_line() -> str:
        _sync(kubectl)
        return kubectl("logs", f"{NAME}-0", "-c", "reloader", "--tail=1")

    eventually(last_line, lambda line: "keeps what it has" in line, deadline_s=SYNCED_WITHIN_S)
    assert fingerprint(address, scene.by, name) == before
    kubectl("delete", "secret", TLS_SECRET)
    eventually(last_line, lambda line: "SecretNotFound" in line, deadline_s=SYNCED_WITHIN_S)
    with secured(address, scene.by, name) as connection:
        assert answer(connection, NEW.command) == b"STORED\r\n"
    kubectl.apply(secret(TLS_SECRET, scene.serves.files))


def test_a_ca_that_is_taken_out_lets_no_client_in_once_its_server_is_replaced(scene: Scene) -> None:
    name, kubectl = "rotated", scene.kubectl
    server = f"{name}-0.{name}.{NAMESPACE}.svc"
    serves, former, latter = scene.authority.issue(server), Authority("former"), Authority("latter")

    def trust(authorities: bytes) -> None:
        kubectl.apply(secret("rotated-tls", {**serves.files, "ca.crt": authorities}))

    def lets_in(authority: Authority) -> bool:
        _sync(kubectl)
        try:
            with secured(
                pod_address(kubectl, f"{name}-0"), context(scene.authority.pem, authority.issue("a")), server
            ) as it:
                return answer(it, b"version\r\n").startswith(b"VERSION ")
        except OSError:
            return False

    def uid() -> str:
        return str(kubectl.get("pod", f"{name}-0")["metadata"]["uid"])

    trust(former.pem)
    tls = {"secretName": "rotated-tls", "clientAuth": "Require"}
    kubectl.apply(memcached(name, 1, workload="StatefulSet", tls=tls, rollout={"minReadySeconds": 0}))
    kubectl.wait(f"mcd/{name}", "condition=Ready")
    assert (lets_in(former), lets_in(latter)) == (True, False)
    before = uid()
    trust(former.pem + latter.pem)
    eventually(lambda: lets_in(latter), bool, deadline_s=SYNCED_WITHIN_S)
    assert (uid(), lets_in(former)) == (before, True)
    trust(latter.pem)
    eventually(
        lambda: (uid() != before, lets_in(former)),
        lambda seen: seen == (True, False),
        deadline_s=SYNCED_WITHIN_S,
        ignoring=(KeyError, LabError),  # the next pod has no address yet, or is not there
    )
    kubectl.wait(f"mcd/{name}", "condition=Ready")
    assert (lets_in(former), lets_in(latter)) == (False, True)
    assert "that trusts no CA but those in ca.crt" in kubectl("events", f"--for=memcached/{name}")


def test_a_server_of_another_user_takes_its_renewed_passwords_and_one_that_may_not_be_told_is_named(
    scene: Scene,
) -> None:
    kubectl = scene.kubectl

    def give(login: Login) -> None:
        kubectl.apply(secret("owned-passwords", {"password-file": f"{login.line}\n".encode()}))

    def run(name: str, server: int, sidecar: int | None = None) -> str:
        users = {"memcached": ("containers", server), "reloader": ("initContainers", sidecar)}
        lists = {
            field: [{"name": container, "securityContext": {"runAsUser": user}}]
            for container, (field, user) in users.items()
            if user is not None
        }
        auth = {"secretName": "owned-passwords"}
        kubectl.apply(memcached(name, 1, auth=auth, rollout={"minReadySeconds": 0}, podTemplate={"spec": lists}))
        kubectl.wait(f"mcd/{name}", "condition=Ready")
        (found,) = _pods(kubectl, name)
        return str(found["status"]["podIP"])

    def logs_in(address: str, login: Login) -> bool:
        _sync(kubectl)
        with plain(address) as connection:
            return answer(connection, login.command) == b"STORED\r\n"

    give(OLD)
    address = run("owned", 1000)
    give(NEW)
    eventually(lambda: logs_in(address, NEW), bool, deadline_s=SYNCED_WITHIN_S)
    assert not logs_in(address, OLD)
    address = run("apart", 1000, 1001)
    give(OLD)
    found = _condition(kubectl, "apart", "Degraded", lambda each: each["reason"] == "ReloadFailed", sync=True)
    assert found["message"].startswith("apart-")
    assert logs_in(address, NEW), "which is what is told"


def _sockets(pid: int, kind: str) -> list[tuple[int, str]]:
    """The local port and the state of each socket in the network of a process."""
    rows = [line.split() for line in Path(f"/proc/{pid}/net/{kind}").read_text().splitlines()[1:]]
    return [(int(row[1].rpartition(":")[2], 16), row[3]) for row in rows]


def _pods(kubectl: Kubectl, name: str) -> list[Any]:
    return list(kubectl.get("pods", "-l", f"memcached_cr={name}")["items"])


def _restarts(kubectl: Kubectl) -> dict[str, int]:
    return {
        f"{pod['metadata']['name']}/{each['name']}": each["restartCount"]
        for pod in _pods(kubectl, NAME)
        for each in (*pod["status"]["containerStatuses"], *pod["status"]["initContainerStatuses"])
    }


def _sync(kubectl: Kubectl) -> None:
    """Have the kubelet look at the pods' Secrets now."""
    kubectl("annotate", "pods", "--all", "--overwrite", f"asked={time.monotonic()}")


def _condition(kubectl: Kubectl, name: str, type_: str, desired: Any, *, sync: bool = False) -> dict[str, Any]:
    def read() -> dict[str, Any]:
        if sync:
            _sync(kubectl)
        conditions = kubectl.get("mcd", name).get("status", {}).get("conditions", ())
        found: dict[str, Any] = next((each for each in conditions if each["type"] == type_), {"reason": ""})
        return found

    return eventually(read, desired, deadline_s=SYNCED_WITHIN_S)
