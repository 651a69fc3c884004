"""Choice of API server and identity: the one place that decides among kubeconfigs and the pod's own account."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from operator_runtime.client.access.addresses import environment_proxy, server_url
from operator_runtime.client.access.credentials import (
    TOKEN_FILE_PERIOD_S,
    CachedIdentity,
    ClusterAccess,
    Credentials,
    NoClusterAccess,
    token_file,
)
from operator_runtime.client.access.tls import ClientTls, Pem
from operator_runtime.client.dns_names import is_label

__all__ = ["ClusterAccess", "Credentials", "NoClusterAccess", "load_access"]


DEFAULT_DIRECTORY = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def load_access(
    *,
    kubeconfig: str | None = None,
    context: str | None = None,
    service_account_dir: Path = DEFAULT_DIRECTORY,
    environ: Mapping[str, str],
) -> ClusterAccess:
    """Choose the API server and the credentials.

    The order: `kubeconfig`, else the files that the variable `KUBECONFIG` lists, else the pod's service account if it
    is all there, else `~/.kube/config`. A `context` exists in kubeconfigs only, so naming one leaves the pod's account
    out. A proxy is the kubeconfig's `proxy-url`, else by `HTTPS_PROXY` and `NO_PROXY`; nothing else of the
    environment, and no ~/.netrc, counts.

    Plugins inherit `environ`. Raises NoClusterAccess, with what was tried and the remedy, where none of them is there,
    or the chosen one is wrong.
    """
    home = _home(environ)

    def from_kubeconfigs(paths: tuple[Path, ...]) -> ClusterAccess:
        # Imported here: YAML is not needed in a pod.
        from operator_runtime.client.access.contexts import context_access
        from operator_runtime.client.access.kubeconfig import read_kubeconfigs

        config = read_kubeconfigs(paths, home=home)
        return context_access(config, context or None, environ=environ)

    if kubeconfig:
        try:
            path = Path(kubeconfig).expanduser()
        except RuntimeError:
            raise NoClusterAccess(
                f"--kubeconfig {kubeconfig}: what ~ stands for is not known here; give the whole path"
            ) from None
        if not is_there(path):
            raise NoClusterAccess(f"--kubeconfig {kubeconfig}: no such file; give the path of a kubeconfig")
        return from_kubeconfigs((path,))

    tried = []
    if variable := environ.get("KUBECONFIG"):
        present = tuple(path for path in map(Path, filter(None, variable.split(":"))) if is_there(path))
        if not present:
            raise NoClusterAccess(
                f"KUBECONFIG={variable}: none of these files exists; correct the variable or unset it"
            )
        return from_kubeconfigs(present)
    tried.append("KUBECONFIG is not set")

    account = ServiceAccount(service_account_dir, environ)
    if context:
        tried.append("a context is set, which a pod's service account does not have")
    elif missing := account.missing():
        tried.append(f"this is not a pod ({', '.join(missing)})")
    else:
        return account.access()

    if home is None:
        tried.append("HOME is not set, and this user has no home")
    else:
        default = home / ".kube" / "config"
        if is_there(default):
            return from_kubeconfigs((default,))
        tried.append(f"no file {default}")
    raise NoClusterAccess(
        f"no API server is configured: --kubeconfig is not given; {'; '.join(tried)}."
        " Give --kubeconfig PATH, or set KUBECONFIG, or run in a pod with a service account"
    )


def _home(environ: Mapping[str, str]) -> Path | None:
    """Return the home directory; None for a user without one: a container's user id need not be in its /etc/passwd."""
    if environ.get("HOME"):
        return Path(environ["HOME"])
    try:
        return Path.home()
    except RuntimeError:
        return None


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

    def access(self, *, clock: Callable[[], float] = time.monotonic) -> ClusterAccess:
        """The access of this pod, in which nothing is `missing`; NoClusterAccess where something of it is no use."""
        server = self._server()
        fetch = token_file(
            self.directory / "token",
            "mount the service account's token in the pod (automountServiceAccountToken), or correct"
            " --service-account-dir",
        )
        identity = CachedIdentity("the pod's token", fetch, clock=clock, max_age_s=TOKEN_FILE_PERIOD_S)
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
