"""Who asks, by certificate or token."""

from __future__ import annotations

import hashlib
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kube_simulator.access.identities import ANONYMOUS, listed_groups, user_info
from kube_simulator.access.pki import Authority
from kube_simulator.access.tokens import Tokens
from kube_simulator.access.users import authenticate, bearer, of_certificate
from kube_simulator.errors import ApiError
from kube_simulator.requests.types import User
from kube_simulator.store.store import Store
from tests.unit.kube_simulator.access.access_support import Clock

NOW = Clock().now
JANE = User("jane", frozenset({"system:authenticated"}))


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def tokens(store: Store) -> Tokens:
    tokens = Tokens(store, now=Clock())
    tokens.add("good", User("robot", frozenset({"robots"})))
    return tokens


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("pki"))


def certificate(authority: Authority, user: str, *groups: str) -> bytes:
    return ssl.PEM_cert_to_DER_cert(authority.client("client", user, groups).certificate.read_text())


class TestCredentials:
    def test_a_certificate_names_user_and_groups(self, authority: Authority, tokens: Tokens) -> None:
        shown = certificate(authority, "jane", "b", "a")
        user = authenticate(tokens, certificate=shown)
        assert (user.name, user.groups) == ("jane", frozenset({"a", "b", "system:authenticated"}))
        digest = hashlib.sha256(shown).hexdigest()
        assert user.extra == {"authentication.kubernetes.io/credential-id": (f"X509SHA256={digest}",)}

    def test_a_certificate_comes_before_a_token(self, authority: Authority, tokens: Tokens) -> None:
        shown = certificate(authority, "jane")
        assert authenticate(tokens, certificate=shown, authorization="Bearer bad").name == "jane"

    def test_a_certificate_without_a_name_is_no_credential(self, tokens: Tokens) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:masters")])
        builder = x509.CertificateBuilder(name, name, key.public_key(), 1, NOW, NOW)
        nameless = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)
        assert authenticate(tokens, certificate=nameless) == ANONYMOUS
        assert authenticate(tokens, certificate=nameless, authorization="Bearer good").name == "robot"

    def test_a_bearer_token_is_a_user(self, tokens: Tokens) -> None:
        user = authenticate(tokens, authorization="Bearer good")
        assert (user.name, user.groups) == ("robot", frozenset({"robots", "system:authenticated"}))

    @pytest.mark.parametrize("header", ["Bearer bad", "bearer bad", "Bearer bad good"])
    def test_a_bad_token_is_401(self, tokens: Tokens, header: str) -> None:
        with pytest.raises(ApiError) as caught:
            authenticate(tokens, authorization=header)
        assert (caught.value.code, caught.value.message) == (401, "Unauthorized")

    @pytest.mark.parametrize("header", [None, "", "Basic good", "Bearer", "Bearer ", "good"])
    def test_no_token_is_nobody(self, tokens: Tokens, header: str | None) -> None:
        assert authenticate(tokens, authorization=header) == ANONYMOUS

    def test_the_scheme_may_be_written_in_any_case(self) -> None:
        assert (bearer("bearer a"), bearer("BEARER a b")) == ("a", "a")


class TestNames:
    def test_groups_are_shown_in_order_and_that_of_everybody_last(self) -> None:
        user = User("u", frozenset({"system:authenticated", "zoo", "system:serviceaccounts:a"}))
        shown = ["system:serviceaccounts:a", "zoo", "system:authenticated"]
        assert listed_groups(user) == shown
        assert user_info(user) == {"username": "u", "groups": shown}

    def test_a_user_is_shown_with_all_that_is_known(self) -> None:
        assert user_info(User("u", uid="1", extra={"k": ("a", "b")})) == {
            "username": "u",
            "uid": "1",
            "extra": {"k": ["a", "b"]},
        }


def test_the_clients_of_an_authority_are_trusted_by_its_certificate(authority: Authority, tmp_path: Path) -> None:
    named = Authority(tmp_path / "named", "somebody")
    server, client = named.server("server", ["127.0.0.1", "localhost"]), named.client("jane", "jane", ["g"])
    listening = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    listening.load_cert_chain(server.certificate, server.key)
    listening.load_verify_locations(named.certificate)
    listening.verify_mode = ssl.CERT_OPTIONAL
    calling = ssl.create_default_context(cafile=named.certificate)
    calling.load_cert_chain(client.certificate, client.key)
    peer = handshake(listening, calling)
    assert peer is not None
    user = of_certificate(peer)
    assert user is not None
    assert (user.name, user.groups) == ("jane", frozenset({"g", "system:authenticated"}))

    stranger = authority.client("jane", "jane", [])
    calling.load_cert_chain(stranger.certificate, stranger.key)
    with pytest.raises(ssl.SSLError):
        handshake(listening, calling)


def handshake(listening: ssl.SSLContext, calling: ssl.SSLContext) -> bytes | None:
    """Both ends of a TLS connection in memory; gives the client's certificate as the server sees it."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = calling.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    server = listening.wrap_bio(to_server, to_client, server_side=True)
    pending = {client, server}
    while pending:
        for end in tuple(pending):
            try:
                end.do_handshake()
                pending.discard(end)
            except ssl.SSLWantReadError:
                continue
    return server.getpeercert(binary_form=True)
