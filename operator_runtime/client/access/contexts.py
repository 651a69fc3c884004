"""One context of a kubeconfig -> the access that it gives: server, trust, proxy, and who we are."""

from __future__ import annotations

import base64
import binascii
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import msgspec

from operator_runtime.client.access.addresses import check_proxy, environment_proxy, is_host, server_url
from operator_runtime.client.access.credentials import (
    TOKEN_FILE_PERIOD_S,
    CachedIdentity,
    ClusterAccess,
    Credentials,
    Identity,
    NoClusterAccess,
    basic,
    bearer,
    is_token,
    token_file,
)
from operator_runtime.client.access.exec_plugin import API_VERSIONS, ExecPlugin
from operator_runtime.client.access.kubeconfig import (
    Cluster,
    Context,
    Exec,
    Kubeconfig,
    KubeconfigEntry,
    User,
    printable,
)
from operator_runtime.client.access.tls import ClientTls, Pem
from operator_runtime.client.dns_names import LABEL_IN_WORDS, is_label

T = TypeVar("T")

# Where a cluster's entry keeps its configuration for an exec plugin.
EXEC_EXTENSION = "client.authentication.k8s.io/exec"


def context_access(
    config: Kubeconfig,
    context: str | None,
    *,
    environ: Mapping[str, str],
    clock: Callable[[], float] = time.monotonic,
) -> ClusterAccess:
    """The access that a context gives (None: the current one); its exec plugins inherit `environ`.

    Raises NoClusterAccess where there is no such context, or it has something that is wrong or not supported.
    """
    chosen = _context(config, context)
    namespace = chosen.value.namespace or None
    if namespace is not None and not is_label(namespace):
        raise NoClusterAccess(f"{chosen.origin}: no namespace can be called {namespace!r}; use {LABEL_IN_WORDS}")
    cluster = _lookup(config.clusters, chosen.value.cluster, "cluster", chosen.origin)
    if chosen.value.user:
        user = _lookup(config.users, chosen.value.user, "user", chosen.origin)
    else:
        user = KubeconfigEntry(User(), chosen.file, f"{chosen.origin} (no user)")

    authority, insecure = _trust(cluster)
    certificate, key = _client_certificate(user)
    server = _server(cluster, uses_tls=insecure or authority is not None or certificate is not None)
    if cluster.value.proxy_url:
        proxy: str | None = check_proxy(cluster.value.proxy_url, f"the proxy-url of {cluster.origin}")
    else:
        proxy = environment_proxy(server, environ)

    identity: CachedIdentity | Identity
    if server.startswith("http://"):
        # As kubectl: a credential is not sent where all on the way can read it.
        identity, tls = Identity(), None
    else:
        identity = _identity(user, cluster, server, environ, clock)
        tls = ClientTls(clock=clock, authority=authority, certificate=certificate, key=key, insecure=insecure)
    return ClusterAccess(
        server=server,
        namespace=namespace,
        description=chosen.origin,
        credentials=Credentials(identity, tls),
        proxy=proxy,
        tls_server_name=_tls_server_name(cluster),
    )


def _context(config: Kubeconfig, name: str | None) -> KubeconfigEntry[Context]:
    known = f"{config.files} has " + (_names(config.contexts) or "no context")
    if not (name or config.current_context):
        raise NoClusterAccess(f"no context is chosen: give --context, or run kubectl config use-context; {known}")
    entry = config.contexts.get(name or config.current_context or "")
    if entry is None:
        which = f"--context {name}" if name else f"current-context {printable(config.current_context or '')}"
        raise NoClusterAccess(f"{which}: no such context exists; {known}")
    return entry


def _lookup(entries: Mapping[str, KubeconfigEntry[T]], name: str | None, kind: str, origin: str) -> KubeconfigEntry[T]:
    entry = entries.get(name or "")
    if entry is None:
        known = _names(entries) or "none"
        raise NoClusterAccess(f"{origin} names the {kind} {name!r}, which does not exist; known: {known}")
    return entry


def _names(entries: Iterable[str]) -> str:
    return ", ".join(printable(each) for each in sorted(entries))


# kubectl takes the scheme for the host, and what follows for the path, which would be shown with a password in it.
_ONE_SLASH = re.compile(r"https?:/(?!/)", re.IGNORECASE)


def _server(cluster: KubeconfigEntry[Cluster], *, uses_tls: bool) -> str:
    text = cluster.value.server or ""
    url = text if "://" in text else f"{'https' if uses_tls else 'http'}://{text}"  # kubectl's rule
    try:
        if _ONE_SLASH.match(text):
            raise ValueError("two slashes stand after its scheme")
        return server_url(url)
    except ValueError as error:
        raise NoClusterAccess(
            f"{cluster.origin}: server is not a URL such as https://192.0.2.1:6443: {error}"
        ) from None


def _tls_server_name(cluster: KubeconfigEntry[Cluster]) -> str | None:
    name = cluster.value.tls_server_name or None
    if name is not None and not is_host(name):
        raise NoClusterAccess(
            f"{cluster.origin}: tls-server-name {name!r} is not the name of a host;"
            " take one that the server's certificate names"
        )
    return name


def _trust(cluster: KubeconfigEntry[Cluster]) -> tuple[Pem | None, bool]:
    value = cluster.value
    authority = _pem(cluster, "certificate-authority", value.certificate_authority, value.certificate_authority_data)
    insecure = bool(value.insecure_skip_tls_verify)
    if insecure and authority is not None:
        raise NoClusterAccess(
            f"{cluster.origin}: insecure-skip-tls-verify and certificate-authority exclude each other; remove one"
        )
    return authority, insecure


def _client_certificate(user: KubeconfigEntry[User]) -> tuple[Pem | None, Pem | None]:
    value = user.value
    certificate = _pem(user, "client-certificate", value.client_certificate, value.client_certificate_data)
    key = _pem(user, "client-key", value.client_key, value.client_key_data)
    if (certificate is None) != (key is None):
        raise NoClusterAccess(
            f"{user.origin}: client-certificate and client-key go together; one of them is missing, add it"
        )
    return certificate, key


def _pem(entry: KubeconfigEntry[T], field: str, path: str | None, data: str | None) -> Pem | None:
    """A field that may be given as text in base64 (which wins) or as the path of a file."""
    if data:
        try:
            return Pem(f"{field}-data of {entry.origin}", data=base64.b64decode("".join(data.split()), validate=True))
        except (binascii.Error, ValueError):
            raise NoClusterAccess(
                f"{entry.origin}: {field}-data is not base64; encode it, or give the file's path as {field}"
            ) from None
    return Pem(f"{field} of {entry.origin}", path=entry.path(path)) if path else None


def _identity(
    user: KubeconfigEntry[User],
    cluster: KubeconfigEntry[Cluster],
    server: str,
    environ: Mapping[str, str],
    clock: Callable[[], float],
) -> CachedIdentity | Identity:
    """Choose the identity besides a client certificate, in kubectl's order: token file, token, password, plugin."""
    value = user.value
    if value.impersonate:
        raise NoClusterAccess(f"{user.origin}: impersonation (as) is not supported; name a user without it")
    if value.token_file:
        fetch = token_file(user.path(value.token_file), f"correct tokenFile of {user.origin}, or log in again")
        return CachedIdentity(f"tokenFile of {user.origin}", fetch, clock=clock, max_age_s=TOKEN_FILE_PERIOD_S)
    if value.token:
        if not is_token(value.token):
            raise NoClusterAccess(f"{user.origin}: token holds white space or characters that no token has; correct it")
        return Identity(bearer(value.token))
    if value.username or value.password:
        return Identity(basic(value.username or "", value.password or ""))
    if value.exec is not None:
        plugin = _plugin(user, value.exec, cluster, server, environ)
        return CachedIdentity(plugin.name, plugin.fetch, clock=clock)
    if value.auth_provider is not None:
        name = value.auth_provider.name
        raise NoClusterAccess(
            f"{user.origin}: the legacy auth-provider {name!r} is not supported; use an exec plugin, such as"
            " gke-gcloud-auth-plugin or kubelogin"
        )
    return Identity()


def _plugin(
    user: KubeconfigEntry[User],
    config: Exec,
    cluster: KubeconfigEntry[Cluster],
    server: str,
    environ: Mapping[str, str],
) -> ExecPlugin:
    if not config.command:
        raise NoClusterAccess(f"exec of {user.origin}: command is empty; name the plugin to run")
    name = f"exec plugin {printable(config.command)} of {user.origin}"
    if config.api_version not in API_VERSIONS:
        raise NoClusterAccess(
            f"{name}: apiVersion must be one of {', '.join(API_VERSIONS)}; update the plugin and the kubeconfig"
        )
    if config.interactive_mode == "Always":
        raise NoClusterAccess(
            f"{name}: interactiveMode is Always, but an operator asks nobody at a terminal;"
            " use a plugin that need not, or a service account's token"
        )
    if config.provide_cluster_info:
        _check_extension(cluster)
    # A bare name is looked up in PATH; anything with a slash is a path beside the kubeconfig.
    command = str(user.path(config.command)) if os.sep in config.command else config.command
    return ExecPlugin(
        name=name,
        command=command,
        arguments=config.args or (),
        api_version=config.api_version,
        environ={**environ, **{each.name: each.value for each in config.env or ()}},
        install_hint=config.install_hint or "",
        cluster_info=(lambda: _cluster_info(cluster, server)) if config.provide_cluster_info else None,
    )


def _cluster_info(cluster: KubeconfigEntry[Cluster], server: str) -> Mapping[str, object]:
    """`spec.cluster` of KUBERNETES_EXEC_INFO, with the authority's file read in."""
    value = cluster.value
    authority, insecure = _trust(cluster)
    info = {
        "server": server,
        "tls-server-name": value.tls_server_name,
        "insecure-skip-tls-verify": insecure,
        "certificate-authority-data": base64.b64encode(authority.read()).decode() if authority else None,
        "proxy-url": value.proxy_url,
        "config": _extension(cluster),
    }
    return {key: item for key, item in info.items() if item}


def _extension(cluster: KubeconfigEntry[Cluster]) -> object:
    return next((each.extension for each in cluster.value.extensions or () if each.name == EXEC_EXTENSION), None)


def _check_extension(cluster: KubeconfigEntry[Cluster]) -> None:
    """YAML can express more than JSON, which the plugin gets."""
    try:
        msgspec.json.encode(_extension(cluster))
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise NoClusterAccess(
            f"{cluster.origin}: the extension {EXEC_EXTENSION} cannot be written as JSON; use strings as its keys, and"
            " no references or numbers of more than 64 bits"
        ) from None
