"""Pure: parts of a pod with TLS and passwords: its Secrets, memcached's options, and who renews them.

A Secret that is renewed reaches the files by the kubelet; `reloader.sh`, in a native sidecar, has memcached take them
up. It has no volume of its own: `kubectl drain` keeps a pod with an `emptyDir`, and an autoscaler its node.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec

from memcached_operator.api.names import CONTAINER, MOUNTED, RELOADER
from memcached_operator.api.quantities import value
from memcached_operator.api.reserved_pod_fields import find
from memcached_operator.api.v1alpha1 import Auth, Tls
from memcached_operator.core.objects.scripts import COMMENT
from memcached_operator.core.objects.workload_types import (
    Container,
    Exec,
    Mount,
    PodSpec,
    Probe,
    Resources,
    SecretSource,
    Volume,
)

TLS, AUTH = "tls", "auth"
"""Names of the volumes."""
_PASSWORDS: Final = f"{MOUNTED}/{AUTH}/password-file"
_VERIFY: Final = {"Request": "1", "Require": "2"}
_READY: Final = "/dev/shm/reloader/ready"
# A server waits for its Secrets as long as it takes: that the probe fails is no reason to start the container again.
_STARTED: Final = Probe(exec=Exec(("test", "-e", _READY)), periodSeconds=1, failureThreshold=2**31 - 1)
# Measured: the shell takes 1 MiB, and the memcached by which it judges 6 for a moment, and some 10 ms of a processor.
# Nothing is written but a log, which the kubelet cuts.
_REQUESTED: Final = {"cpu": "5m", "memory": "32Mi", "ephemeral-storage": "16Mi"}
_MOST: Final = {"cpu": "100m", "ephemeral-storage": "64Mi"}
_AS_SERVER: Final = ("imagePullPolicy", "securityContext")


def options(tls: Tls | None, auth: Auth | None) -> tuple[str, ...]:
    """Return memcached's options: TLS 1.2 and newer alone, and where the passwords are."""
    words: list[str] = []
    if tls is not None:
        folder = f"{MOUNTED}/{TLS}"
        chosen = [f"ssl_chain_cert={folder}/tls.crt", f"ssl_key={folder}/tls.key", "ssl_min_version=2"]
        if (verify := _VERIFY.get(tls.clientAuth)) is not None:
            chosen += [f"ssl_ca_cert={folder}/ca.crt", f"ssl_verify_mode={verify}"]
        words += ["-Z", "-o", ",".join(chosen)]
    if auth is not None:
        words += ["-Y", _PASSWORDS]
    return tuple(words)


def with_secrets(pod: PodSpec, tls: Tls | None, auth: Auth | None) -> PodSpec:
    """A pod with what its memcached needs for these; the same where there are none."""
    named = {volume: part.secretName for volume, part in ((TLS, tls), (AUTH, auth)) if part is not None}
    if not named:
        return pod
    live = tls is None or tls.reload == "Live"
    mounts = tuple(Mount(name, f"{MOUNTED}/{name}", readOnly=True) for name in named)
    (memcached,) = pod.containers or ()
    return msgspec.structs.replace(
        pod,
        # Without a reloader to wait for a Secret, the kubelet does.
        volumes=tuple(Volume(name, SecretSource(secret, True if live else None)) for name, secret in named.items()),
        containers=(msgspec.structs.replace(memcached, volumeMounts=mounts),),
        # By a signal, which reaches the processes of the same user.
        shareProcessNamespace=True if live else None,
        initContainers=(_reloader(memcached, mounts, tls, auth),) if live else None,
    )


def _reloader(memcached: Container, mounts: tuple[Mount, ...], tls: Tls | None, auth: Auth | None) -> Container:
    names = tuple(part.secretName if part is not None else "" for part in (tls, auth))
    return Container(
        name=RELOADER,
        image=memcached.image,
        command=("sh", "-c", script(), RELOADER),
        args=(*names, *options(tls, auth)),
        resources=_resources(memcached.resources or Resources()),
        restartPolicy="Always",
        startupProbe=_STARTED,
        securityContext=memcached.securityContext,
        volumeMounts=mounts,
    )


def _resources(server: Resources) -> Resources:
    """Return the sidecar's resources: bounded in what its server's are, so that what admits the one admits the other.

    A pod of the class Guaranteed stays one.
    """
    requested, most = server.requests or {}, server.limits or {}
    limits = {name: min(default, most[name], key=value) for name, default in _MOST.items() if name in most}
    bounded = {name: limit for name, limit in limits.items() if requested.get(name) == most[name]}
    # Its memory is its own: the server's may change while it runs.
    needed = {name: default for name, default in _REQUESTED.items() if name == "memory" or name in requested}
    requests = {name: min(default, limits.get(name, default), key=value) for name, default in needed.items()} | bounded
    return Resources(limits={"memory": _REQUESTED["memory"]} | limits, requests=requests)


def with_agreeing_sidecar(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """A `spec.podTemplate` in which the sidecar is run as memcached is: else it may not signal it, or not start.

    What it has for the sidecar itself goes before that.

    Args:
        given: it, `keyed`.
    """
    server, own = find(given, "spec", "containers", CONTAINER), find(given, "spec", "initContainers", RELOADER)
    alike = {field: server[field] for field in _AS_SERVER if isinstance(server, Mapping) and field in server}
    if not alike:
        return given
    reloader = {"name": RELOADER, **alike, **(own or {})}
    contexts = [each["securityContext"] for each in (alike, own or {}) if "securityContext" in each]
    if len(contexts) > 1 and all(isinstance(each, Mapping) for each in contexts):
        reloader["securityContext"] = contexts[0] | contexts[1]
    others = find(given, "spec", "initContainers") or {}
    return {**given, "spec": {**given["spec"], "initContainers": {**others, RELOADER: reloader}}}


@lru_cache(maxsize=1)
def script() -> str:
    """`reloader.sh` as pods have it: without its comments, as a better one is no reason to replace servers."""
    return COMMENT.sub("", Path(__file__).with_name("reloader.sh").read_text())
