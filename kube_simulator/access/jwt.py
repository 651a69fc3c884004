"""JSON web tokens signed with ES256 (RFC 7515, RFC 7518 section 3.4): made, and read if the signature is good."""

from __future__ import annotations

import base64
import hashlib
import json

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from kube_simulator.values import Json

_NUMBER_BYTES = 32  # of each of the two numbers of a signature on the curve P-256
_ALGORITHM = "ES256"


class Malformed(Exception):
    """The text is no token at all."""


class BadSignature(Exception):
    """The token was not signed with this key, or was changed since."""


class Signer:
    """A private key and what can be done with it."""

    def __init__(self, key: ec.EllipticCurvePrivateKey | None = None) -> None:
        """Use this key, which is on the curve P-256, or a new one."""
        self._private = key or ec.generate_private_key(ec.SECP256R1())
        self._public = self._private.public_key()
        public = self._public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        self._key_id = _encoded(hashlib.sha256(public).digest())

    def sign(self, claims: Json) -> str:
        """A token with these claims."""
        signed = f"{_encoded_json({'alg': _ALGORITHM, 'kid': self._key_id})}.{_encoded_json(claims)}"
        r, s = decode_dss_signature(self._private.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{signed}.{_encoded(r.to_bytes(_NUMBER_BYTES) + s.to_bytes(_NUMBER_BYTES))}"

    def read(self, token: str) -> Json:
        """The claims of a token of this key. Raises Malformed and BadSignature."""
        signed, _, signature = token.rpartition(".")
        try:
            header, claims = (json.loads(_decoded(part)) for part in signed.split("."))
            numbers = _decoded(signature)
        except ValueError as error:
            raise Malformed(str(error)) from error
        if not isinstance(header, dict) or not isinstance(claims, dict):
            raise Malformed("header and claims must be JSON objects")
        if header.get("alg") != _ALGORITHM or len(numbers) != 2 * _NUMBER_BYTES:
            raise BadSignature
        r, s = int.from_bytes(numbers[:_NUMBER_BYTES]), int.from_bytes(numbers[_NUMBER_BYTES:])
        try:
            self._public.verify(encode_dss_signature(r, s), signed.encode(), ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            raise BadSignature from None
        return claims


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _encoded_json(value: Json) -> str:
    return _encoded(json.dumps(value, separators=(",", ":")).encode())


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
