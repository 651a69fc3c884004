"""Pure: parts of a pod with TLS and passwords: its Secrets, memcached's options, and who renews them.

A Secret that is renewed reaches the files by the kubelet; `reloader.sh`, in a native sidecar, has memcached take them
up. It has no volume of its own: `kubectl drain` keeps a pod with an `emptyDir`, and an autoscaler its node.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from memcached_operator.api.names import MOUNTED, RELOADER
from memcached_operator.api.quantities import value
from memcached_operator.api.v1alpha1 import Auth, Spec, Tls
from memcached_operator.core.objects import workload_types as types
from memcached_operator.core.objects.pod import Pod
from memcached_operator.core.objects.scripts import FOLDER, MOUNT, script

TLS, AUTH = "tls", "auth"
"""Names of the volumes."""
_SHELL: Final = Path(__file__).with_name("reloader.sh")
_PASSWORDS: Final = f"{MOUNTED}/{AUTH}/password-file"
_VERIFY: Final = {"Request": "1", "Require": "2"}
_READY: Final = "/dev/shm/reloader/ready"
# A server waits for its Secrets as long as it takes: that the probe fails is no reason to start the container again.
_STARTED: Final = types.Probe(
    exec=types.ExecAction(("test", "-e", _READY)), periodSeconds=1, failureThreshold=2**31 - 1
)
# Measured: the shell takes 1 MiB, and the memcached by which it judges 6 for a moment, and some 10 ms of a processor.
# Nothing is written but a log, which the kubelet cuts.
_REQUESTED: Final = {"cpu": "5m", "memory": "32Mi", "ephemeral-storage": "16Mi"}
_MOST: Final = {"cpu": "100m", "ephemeral-storage": "64Mi"}


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


def pod(pod: Pod, spec: Spec) -> Pod:
    """Add the Secrets, memcached's options for them, and the sidecar that has it take up renewed ones."""
    tls, auth = spec.tls, spec.auth
    named = {volume: part.secretName for volume, part in ((TLS, tls), (AUTH, auth)) if part is not None}
    live = tls is None or tls.reload == "Live"
    mounts = tuple(types.Mount(name, f"{MOUNTED}/{name}", readOnly=True) for name in named)
    pod = pod.plus(
        options=options(tls, auth),
        mounts=mounts,
        # Without a reloader to wait for a Secret, the kubelet does.
        volumes=tuple(
            types.Volume(name, types.SecretSource(secret, True if live else None)) for name, secret in named.items()
        ),
    )
    if not live:
        return pod
    scripts, reloader = ((_SHELL.name, script(_SHELL)),), _reloader(pod.server, mounts, tls, auth)
    return pod.plus(scripts=scripts, sidecars=(reloader,), like_server=(RELOADER,))


def _reloader(
    memcached: types.Container, mounts: tuple[types.Mount, ...], tls: Tls | None, auth: Auth | None
) -> types.Container:
    names = tuple(part.secretName if part is not None else "" for part in (tls, auth))
    return types.Container(
        name=RELOADER,
        image=memcached.image,
        command=("sh", f"{FOLDER}/{_SHELL.name}"),
        args=(*names, *options(tls, auth)),
        resources=_resources(memcached.resources or types.ResourceRequirements()),
        restartPolicy="Always",
        startupProbe=_STARTED,
        securityContext=memcached.securityContext,
        volumeMounts=(*mounts, MOUNT),
    )


def _resources(server: types.ResourceRequirements) -> types.ResourceRequirements:
    """The sidecar's resources: bounded in what its server's are, so that admission and class of the pod agree."""
    requested, most = server.requests or {}, server.limits or {}
    limits = {name: min(default, most[name], key=value) for name, default in _MOST.items() if name in most}
    bounded = {name: limit for name, limit in limits.items() if requested.get(name) == most[name]}
    # Its memory is its own: the server's may change while it runs.
    needed = {name: default for name, default in _REQUESTED.items() if name == "memory" or name in requested}
    requests = {name: min(default, limits.get(name, default), key=value) for name, default in needed.items()} | bounded
    return types.ResourceRequirements(limits={"memory": _REQUESTED["memory"]} | limits, requests=requests)
