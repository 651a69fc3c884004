"""Admission: webhooks of a namespace, and one that keeps a write waiting, by which a test is in the middle of it."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

from kube_simulator.access.pki import Authority
from operator_runtime.testing.waiting import DEADLINE_S
from tests.kubectl_in_namespace import Kubectl

_HOST = "127.0.0.1"
# Kubernetes' upper bound; the API server gives up then, and lets the write pass.
_HOLD_S = 30
_PROBE = "probe"
_ADMINISTRATOR = "lab-admin"


def webhook_for(namespace: str, resource: str, *operations: str, **more: object) -> dict[str, object]:
    """A configuration of the namespace's name: a webhook is asked for such writes of a resource of the group apps."""
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": operations, "resources": [resource]}
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    webhook = {"name": "webhook.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", **more}
    identity = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    webhooks = [{**webhook, "namespaceSelector": selector, "rules": [rule]}]
    return {**identity, "metadata": {"name": namespace}, "webhooks": webhooks}


def takes_deployments(kubectl: Kubectl) -> bool:
    """Whether the API server takes a Deployment in the namespace; it learns of webhooks and policies by watches."""
    words = ("create", "deployment", _PROBE, "--image=none", "--dry-run=server")
    return kubectl.run(*words, check=False).returncode == 0


class SlowAdmission:
    """Holds creations in one namespace until `release`, but for the administrator's.

    A context manager that begins when the API server obeys it.
    """

    def __init__(self, kubectl: Kubectl, resource: str, directory: Path) -> None:
        """
        Args:
            kubectl: its namespace is the one that is slowed down.
            resource: what is, of the group apps.
            directory: for the webhook's certificate.
        """
        self._kubectl = kubectl
        self._resource = resource
        self._seen: set[str] = set()
        self._changed = threading.Condition()
        self._released = threading.Event()
        self._authority = Authority(directory / "admission")
        pair = self._authority.server("admission", [_HOST])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
        self._server = _Server((_HOST, 0), _handler(self))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        address, authority = f"https://{_HOST}:{self._server.server_port}/", self._authority.certificate.read_bytes()
        client = {"url": address, "caBundle": base64.b64encode(authority).decode()}
        more = {"failurePolicy": "Ignore", "timeoutSeconds": _HOLD_S}
        self._kubectl.apply(webhook_for(self._kubectl.namespace, self._resource, "CREATE", clientConfig=client, **more))
        ends = time.monotonic() + DEADLINE_S
        while _PROBE not in self._seen:
            # The API server learns of the configuration by a watch of its own; each try takes kubectl's time.
            assert time.monotonic() < ends, "the API server never called the webhook"
            takes_deployments(self._kubectl)
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
        self._kubectl("delete", "validatingwebhookconfiguration", self._kubectl.namespace)
        self._server.shutdown()
        self._server.server_close()

    def wait_for_request(self, name: str) -> None:
        """Return when the creation of the object of that name is being held."""
        with self._changed:
            assert self._changed.wait_for(lambda: name in self._seen, DEADLINE_S), f"nobody created {name}"

    def release(self) -> None:
        """Let go what is held, and hold nothing more."""
        self._released.set()

    def admit(self, name: str, user: str) -> None:
        """Called for each request; returns when it may go on."""
        with self._changed:
            self._seen.add(name)
            self._changed.notify_all()
        if user != _ADMINISTRATOR:
            self._released.wait(_HOLD_S)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False


def _handler(slow: SlowAdmission) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
            slow.admit(request["name"], request["userInfo"]["username"])
            answer = {
                "apiVersion": "admission.k8s.io/v1",
                "kind": "AdmissionReview",
                "response": {"uid": request["uid"], "allowed": True},
            }
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler
