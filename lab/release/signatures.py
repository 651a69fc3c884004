"""Signatures by cosign with a key of one's own: no public log, no identity provider, no clock of others.

What is attached to an image is where cosign puts it: referrers of its digest, in its registry.
"""

from __future__ import annotations

import base64
import json
import os
import tempfile
from pathlib import Path
from typing import Any, Final

from lab.programs import go_tools

# What cosign 3 asks of Sigstore's public services, unless it is told of a key alone.
_WITHOUT_LOG: Final = ("--use-signing-config=false", "--tlog-upload=false", "--yes")
_WITHOUT_LOG_OR_TIME: Final = ("--insecure-ignore-tlog=true", "--private-infrastructure=true")
# Whom cosign trusts besides the key: nobody. Without the file it would fetch Sigstore's.
_NOBODY: Final = '{"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1"}'
# A registry on loopback has no certificate.
_PLAIN: Final = ("--allow-http-registry=true",)

SBOM: Final = "cyclonedx"
PROVENANCE: Final = "slsaprovenance1"
"""Types of attestations, as cosign calls them."""


class Key:
    """A key pair, in a folder: `cosign.key`, and `cosign.pub` for strangers.

    What is signed is on a registry that the caller has a login of, in the files that cosign reads by the environment.
    """

    def __init__(self, folder: Path, password: str) -> None:
        self._folder = folder
        self._password = password

    @property
    def public(self) -> Path:
        return self._folder / "cosign.pub"

    @property
    def private(self) -> Path:
        return self._folder / "cosign.key"

    def make(self) -> Key:
        """Make it, and return it."""
        prefix = f"--output-key-prefix={self._folder / 'cosign'}"
        self._run("generate-key-pair", prefix)
        return self

    def sign_image(self, image: str) -> None:
        """Sign an image, an index or a chart by its digest."""
        self._with_key("sign", *_PLAIN, image)

    def attest(self, image: str, type_: str, predicate: Path) -> None:
        """Attach a signed statement about an image: its contents, or how it was made."""
        self._with_key("attest", *_PLAIN, f"--type={type_}", f"--predicate={predicate}", image)

    def sign_file(self, file: Path) -> Path:
        """Sign a file; the signature is FILE.sigstore.json beside it."""
        signature = signature_of(file)
        self._with_key("sign-blob", f"--bundle={signature}", str(file))
        return signature

    def _with_key(self, verb: str, *arguments: str) -> None:
        self._run(verb, f"--key={self.private}", *_WITHOUT_LOG, *arguments)

    def _run(self, *arguments: str) -> None:
        go_tools.run("cosign", *arguments, variables=os.environ | {"COSIGN_PASSWORD": self._password})


def signature_of(file: Path) -> Path:
    """The path of a file's signature."""
    return file.with_name(f"{file.name}.sigstore.json")


def verify_image(public: Path, image: str) -> None:
    """Verify that an image was signed. Raises ToolError: it was not, or by another key."""
    _verify("verify", public, *_PLAIN, image)


def attested(public: Path, image: str, type_: str) -> Any:
    """Verify a statement about an image, and return its predicate.

    Raises:
        ToolError: there is none, or by another key alone.
    """
    found = _verify("verify-attestation", public, *_PLAIN, f"--type={type_}", image)
    envelope = json.loads(found.splitlines()[0])
    return json.loads(base64.b64decode(envelope["payload"]))["predicate"]


def verify_file(public: Path, file: Path) -> None:
    """Verify that a file is as it was signed. Raises ToolError: it is not, or was signed by another key."""
    _verify("verify-blob", public, f"--bundle={signature_of(file)}", str(file))


def _verify(verb: str, public: Path, *arguments: str) -> str:
    with tempfile.TemporaryDirectory(prefix="cosign-") as home:
        nobody = Path(home) / "trusted_root.json"
        nobody.write_text(_NOBODY)
        options = (f"--key={public}", f"--trusted-root={nobody}", *_WITHOUT_LOG_OR_TIME)
        return go_tools.run("cosign", verb, *options, *arguments, variables={"HOME": home})
