"""Plain HTTP against a cluster's API: nothing is retried, filled in or hidden, so that a test sees each answer."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlencode, urlsplit

import yaml

Json = dict[str, Any]

# Far above what anything here takes, so that only something that never comes runs into it.
DEADLINE_S = 40.0

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

# A resourceVersion far above what a cluster under test gets to, and a uid that no object has.
FUTURE_VERSION = str(10**12)
OTHER_UID = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server said to one request."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Json:
        """The body, which must be a JSON object."""
        decoded = json.loads(self.body)
        assert isinstance(decoded, dict), decoded
        return decoded

    def expect(self, status: int, reason: str | None = None) -> Json:
        """The body, provided that the answer has this HTTP status and, if given, this reason in a Status."""
        assert self.status == status, f"{self.status}, not {status}: {self.body[:2000]!r}"
        found = self.json
        if reason is not None:
            assert (found["kind"], found["status"], found["code"]) == ("Status", "Failure", status), found
            assert found.get("reason") == reason, found
        return found


class Event(NamedTuple):
    """One event of a watch."""

    type: str
    object: Json

    @property
    def key(self) -> tuple[str, str]:
        """Type and object name, by which most tests tell events apart."""
        return self.type, self.object["metadata"].get("name", "")


class Watch:
    """A running watch; iterating ends with the stream, and fails if it breaks or stays silent past the deadline."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self._response = response
        self._events = self._read()
        self.headers: Mapping[str, str] = dict(response.headers.items())

    def __iter__(self) -> Iterator[Event]:
        return self._events

    def _read(self) -> Iterator[Event]:
        rest = b""
        # Not readline(), which takes a body without its last chunk for complete; read1() raises IncompleteRead.
        while chunk := self._response.read1():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                event = json.loads(line)
                assert event.keys() == {"type", "object"}, event
                yield Event(event["type"], event["object"])
        assert not rest, f"a truncated line: {rest!r}"

    def until(self, last: Callable[[Event], bool]) -> list[Event]:
        """The next events, up to and with the first for which ``last`` holds."""
        deadline = time.monotonic() + DEADLINE_S
        events = []
        for event in self:
            events.append(event)
            if last(event):
                return events
            assert time.monotonic() < deadline, events
        raise AssertionError(f"the stream ended after {events}")

    def take(self, count: int) -> list[Event]:
        """The next ``count`` events."""
        return [self.until(lambda _: True)[0] for _ in range(count)]


class Server(Protocol):
    """What a client has to know of a cluster."""

    server: str
    ca_path: Path
    kubeconfig_path: Path


class Api:
    """A client with one user's credential, taken from a kubeconfig; ``None`` makes an anonymous one."""

    def __init__(self, cluster: Server, kubeconfig: Path | None, *, token: str | None = None) -> None:
        self._address = urlsplit(cluster.server).netloc
        self._context = ssl.create_default_context(cafile=cluster.ca_path)
        self._token = token
        if kubeconfig is not None:
            self._load(yaml.safe_load(kubeconfig.read_text())["users"][0]["user"])
        self._connection = self._connect()

    def _load(self, user: Mapping[str, str]) -> None:
        self._token = user.get("token")
        if "client-certificate-data" in user:
            with tempfile.NamedTemporaryFile(suffix=".pem") as pair:
                for part in ("client-certificate-data", "client-key-data"):
                    pair.write(base64.b64decode(user[part]))
                pair.flush()
                self._context.load_cert_chain(pair.name)

    def _connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._address, context=self._context, timeout=DEADLINE_S)

    def close(self) -> None:
        """Close the connection that requests share."""
        self._connection.close()

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = JSON,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send one request; bytes go out as they are, any other body as JSON."""
        self._send(self._connection, method, path, body, content_type, query, headers)
        response = self._connection.getresponse()
        return Answer(response.status, dict(response.headers.items()), response.read())

    def _send(
        self,
        connection: http.client.HTTPSConnection,
        method: str,
        path: str,
        body: object = None,
        content_type: str = JSON,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        sent = {"Accept": JSON, "User-Agent": "conformance/1 (test)"}
        if content is not None:
            sent["Content-Type"] = content_type
        if self._token is not None:
            sent["Authorization"] = f"Bearer {self._token}"
        target = f"{path}?{urlencode(query)}" if query else path
        connection.request(method, target, content, sent | dict(headers or {}))

    def get(self, path: str, **query: str) -> Answer:
        """Read one object or a list."""
        return self.request("GET", path, query=query)

    def post(self, path: str, body: object, **query: str) -> Answer:
        """Create an object in a collection."""
        return self.request("POST", path, body, query=query)

    def put(self, path: str, body: object, **query: str) -> Answer:
        """Replace an object."""
        return self.request("PUT", path, body, query=query)

    def delete(self, path: str, body: object = None, **query: str) -> Answer:
        """Delete an object or, by selectors, a collection; the body is a DeleteOptions."""
        return self.request("DELETE", path, body, query=query)

    def merge(self, path: str, body: object, **query: str) -> Answer:
        """Send a JSON merge patch."""
        return self.request("PATCH", path, body, content_type=MERGE_PATCH, query=query)

    def json_patch(self, path: str, *operations: Json, **query: str) -> Answer:
        """Send a JSON patch."""
        return self.request("PATCH", path, list(operations), content_type=JSON_PATCH, query=query)

    def strategic(self, path: str, body: object, **query: str) -> Answer:
        """Send a strategic merge patch."""
        return self.request("PATCH", path, body, content_type=STRATEGIC_MERGE_PATCH, query=query)

    def apply(self, path: str, body: object, manager: str = "tester", *, force: bool = False, **query: str) -> Answer:
        """Apply on the server's side; ``force`` is left out of the request when it is false."""
        forced = {"force": "true"} if force else {}
        return self.request(
            "PATCH", path, body, content_type=APPLY_PATCH, query={"fieldManager": manager, **forced, **query}
        )

    @contextmanager
    def watch(self, path: str, accept: str = JSON, /, **query: str) -> Iterator[Watch]:
        """Watch on a connection of its own, which the server must answer with 200."""
        connection = self._connect()
        try:
            self._send(connection, "GET", path, query={"watch": "1", **query}, headers={"Accept": accept})
            response = connection.getresponse()
            assert response.status == 200, response.read()
            yield Watch(response)
        finally:
            connection.close()


def statuses_at_once(cluster: Server, count: int, act: Callable[[Api, int], Answer]) -> list[int]:
    """The sorted statuses of ``count`` requests that are sent together, each by the administrator's own client."""

    def one(number: int) -> int:
        client = Api(cluster, cluster.kubeconfig_path)
        try:
            return act(client, number).status
        finally:
            client.close()

    with ThreadPoolExecutor(count) as pool:
        return sorted(pool.map(one, range(count)))


def version(found: Json) -> int:
    """The resourceVersion of an object or a list, as the number whose order clients may rely on."""
    return int(found["metadata"]["resourceVersion"])


def causes(status: Json) -> set[tuple[str, str]]:
    """Reason and field of each cause in a Status."""
    return {(cause["reason"], cause["field"]) for cause in status["details"]["causes"]}
