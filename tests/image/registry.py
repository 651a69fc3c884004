"""A registry on loopback that takes images: what pushing needs of the OCI distribution specification, in memory.

https://github.com/opencontainers/distribution-spec/blob/main/spec.md, "Push". There is no TLS and no login.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import tarfile
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from operator_runtime.testing.waiting import DEADLINE_S

_PATH = re.compile(r"/v2/(?P<name>[\w./-]+)/(?P<kind>blobs|manifests)/(?P<which>.+)")


@dataclass(frozen=True, slots=True)
class Registry:
    """What was pushed so far.

    Attributes:
        address: host and port, which names of images begin with.
    """

    address: str
    blobs: dict[str, bytes] = field(default_factory=dict)
    manifests: dict[str, dict[str, Any]] = field(default_factory=dict)

    def config(self, image: str) -> dict[str, Any]:
        """An image's configuration: what a container of it does, and the digests of its layers."""
        found: dict[str, Any] = json.loads(self.blobs[self.manifests[image]["config"]["digest"]])
        return found

    def files(self, image: str) -> dict[str, bytes]:
        """The files of all layers, later ones over earlier ones."""
        found = {}
        for layer in self.manifests[image]["layers"]:
            content = self.blobs[layer["digest"]]
            plain = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
            with tarfile.open(fileobj=io.BytesIO(plain)) as archive:
                for entry in archive:
                    if entry.isfile() and (file := archive.extractfile(entry)) is not None:
                        found[entry.name] = file.read()
        return found


@contextmanager
def serving() -> Iterator[Registry]:
    """An empty one until the end of the block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    registry = Registry(f"127.0.0.1:{server.server_port}")
    _Handler.registry, _Handler.uploads = registry, {}
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join(DEADLINE_S)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    registry: Registry
    uploads: dict[str, bytes]

    def do_GET(self) -> None:
        self._answer(HTTPStatus.OK if urlsplit(self.path).path == "/v2/" else HTTPStatus.NOT_FOUND)

    def do_HEAD(self) -> None:
        found = _PATH.fullmatch(urlsplit(self.path).path)
        if found is None or found["which"] not in self.registry.blobs:
            self._answer(HTTPStatus.NOT_FOUND)
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Length", str(len(self.registry.blobs[found["which"]])))
        self.send_header("Docker-Content-Digest", found["which"])
        self.end_headers()

    def do_POST(self) -> None:
        self._body()
        upload = uuid.uuid4().hex
        self.uploads[upload] = b""
        self._answer(HTTPStatus.ACCEPTED, Location=f"{urlsplit(self.path).path.rstrip('/')}/{upload}", Range="0-0")

    def do_PATCH(self) -> None:
        upload = self.path.rpartition("/")[2]
        self.uploads[upload] += self._body()
        end = max(len(self.uploads[upload]) - 1, 0)
        self._answer(HTTPStatus.ACCEPTED, Location=self.path, Range=f"0-{end}")

    def do_PUT(self) -> None:
        address = urlsplit(self.path)
        body = self._body()
        found = _PATH.fullmatch(address.path)
        assert found is not None
        if found["kind"] == "manifests":
            self._put_manifest(f"{self.registry.address}/{found['name']}:{found['which']}", body)
            return
        content = self.uploads.pop(address.path.rpartition("/")[2]) + body
        (digest,) = parse_qs(address.query)["digest"]
        if digest != _digest(content):
            self._answer(HTTPStatus.BAD_REQUEST)
            return
        self.registry.blobs[digest] = content
        self._answer(HTTPStatus.CREATED, Location=f"/v2/{found['name']}/blobs/{digest}")

    def _put_manifest(self, image: str, body: bytes) -> None:
        manifest = json.loads(body)
        named = [manifest["config"]["digest"], *(layer["digest"] for layer in manifest["layers"])]
        if any(digest not in self.registry.blobs for digest in named):
            self._answer(HTTPStatus.BAD_REQUEST)  # MANIFEST_BLOB_UNKNOWN
            return
        self.registry.manifests[image] = manifest
        self._answer(HTTPStatus.CREATED, Location=self.path, Docker_Content_Digest=_digest(body))

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _answer(self, status: HTTPStatus, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        pass


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
