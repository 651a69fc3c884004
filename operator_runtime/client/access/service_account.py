"""Access from inside a pod: two files that the kubelet rotates, and two variables that name the API server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from operator_runtime.client.access.addresses import server_url
from operator_runtime.client.access.credentials import (
    TOKEN_FILE_PERIOD_S,
    CachedIdentity,
    ClusterAccess,
    Credentials,
    NoClusterAccess,
    token_file,
)
from operator_runtime.client.access.proxy import environment_proxy
from operator_runtime.client.access.tls import ClientTls, Pem
from operator_runtime.client.dns_names import is_label

DEFAULT_DIRECTORY = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """A pod's service account as files and variables; `missing` reports whether it is complete."""

    directory: Path
    environ: Mapping[str, str]

    def missing(self) -> tuple[str, ...]:
        """List what a pod would have and this place has not, in words; empty inside a pod."""
        files = (self.directory / "token", self.directory / "ca.crt")
        variables = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")
        return (
            *(f"no file {file}" for file in files if not is_there(file)),
            *(f"{variable} is not set" for variable in variables if not self.environ.get(variable)),
        )

    def access(self, *, clock: Callable[[], float], wall_clock: Callable[[], float]) -> ClusterAccess:
        """The access of this pod. Call it only when nothing is `missing`.

        Raises:
            NoClusterAccess: the variables name no usable server or proxy, or the file `namespace` holds no name.
        """
        server = self._server()
        fetch = token_file(
            self.directory / "token",
            "mount the service account's token in the pod (automountServiceAccountToken), or correct"
            " --service-account-dir",
        )
        identity = CachedIdentity(
            "the pod's token", fetch, clock=clock, wall_clock=wall_clock, max_age_s=TOKEN_FILE_PERIOD_S
        )
        tls = ClientTls(clock=clock, authority=Pem("the pod's certificate authority", path=self.directory / "ca.crt"))
        return ClusterAccess(
            server=server,
            namespace=self._namespace(),
            description="the pod's service account",
            credentials=Credentials(identity, tls),
            proxy=environment_proxy(server, self.environ),
            in_pod=True,
        )

    def _server(self) -> str:
        host, port = self.environ["KUBERNETES_SERVICE_HOST"], self.environ["KUBERNETES_SERVICE_PORT"]
        try:
            return server_url(f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}")
        except ValueError as error:
            raise NoClusterAccess(
                "the variables KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT make no URL such as"
                f" https://192.0.2.1:443: {error}; correct them"
            ) from None

    def _namespace(self) -> str | None:
        file = self.directory / "namespace"
        try:
            name = file.read_bytes().decode("utf-8", "replace").strip()
        except OSError:
            return None
        if name and not is_label(name):
            raise NoClusterAccess(f"{file} holds no namespace's name; mount the service account's volume there")
        return name or None


def is_there(path: Path) -> bool:
    """Report whether such a file exists. One that may not be read counts: the error comes when it is read."""
    try:
        return path.exists()
    except OSError:
        return True
