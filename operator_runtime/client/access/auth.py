"""Choice of API server and identity: the one place that decides among kubeconfigs and the pod's own account."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from operator_runtime.client.access.credentials import ClusterAccess, Credentials, NoClusterAccess
from operator_runtime.client.access.service_account import DEFAULT_DIRECTORY, ServiceAccount, is_there

__all__ = ["ClusterAccess", "Credentials", "NoClusterAccess", "load_access"]


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

    Args:
        kubeconfig: one path, as `--kubeconfig` gives it; "" counts as None.
        context: None for the current one; "" counts as None.
        service_account_dir: where a pod finds `token`, `ca.crt` and `namespace`.
        environ: the variables of the process; plugins inherit them.

    Raises:
        NoClusterAccess: none of them is there, or the chosen one is wrong; lists what was tried and the remedy.
    """
    home = _home(environ)

    def from_kubeconfigs(paths: tuple[Path, ...]) -> ClusterAccess:
        # Imported here: YAML is not needed in a pod.
        from operator_runtime.client.access.contexts import context_access
        from operator_runtime.client.access.kubeconfig import read_kubeconfigs

        config = read_kubeconfigs(paths, home=home)
        return context_access(config, context or None, environ=environ, clock=time.monotonic, wall_clock=time.time)

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
        return account.access(clock=time.monotonic, wall_clock=time.time)

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
