"""Value: the pod of a server, to which core and then each feature that is on adds its part."""

from __future__ import annotations

from typing import Any

import msgspec

from memcached_operator.core.objects.scripts import Scripts
from memcached_operator.core.objects.workload_types import Container, ContainerPort, Mount, Volume


class Pod(msgspec.Struct, frozen=True, kw_only=True):
    """Pod of a server, before `spec.podTemplate` is merged with it.

    Attributes:
        server: memcached's container, without what stands below.
        security: `securityContext` of the pod.
        items_mib: memory for items, in MiB.
        only_replaced: the pod is made for the digest of what only a new pod takes on: what a running server can be
            given is left out.
        launcher: words that run memcached's command, which follows them.
        options: words of that command, after those that every server has.
        scripts: what the launcher and sidecars run, by the names of files in `scripts.FOLDER`; the launcher has them
            there, a sidecar needs `scripts.MOUNT`.
        sidecars: native ones, in the order of their start.
        like_server: names of those that signal memcached, so that they share its processes and run as its user.
        keeps_items: a container that starts again has the items of the one before; no memory can be given to it.
        grace_s: seconds that it may take to end, None for the API server's default.
        disk_from: bytes from which on an item is moved to a disk, None without one; can be given to a running server.
    """

    server: Container
    security: dict[str, Any]
    items_mib: int
    only_replaced: bool = False
    launcher: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    ports: tuple[ContainerPort, ...] = ()
    mounts: tuple[Mount, ...] = ()
    volumes: tuple[Volume, ...] = ()
    scripts: Scripts = ()
    sidecars: tuple[Container, ...] = ()
    like_server: tuple[str, ...] = ()
    keeps_items: bool = False
    disk_from: int | None = None
    grace_s: int | None = None

    def plus(self, **parts: tuple[Any, ...]) -> Pod:
        """Return the pod with these at the end of its own, each by the name of its attribute."""
        return msgspec.structs.replace(self, **{name: getattr(self, name) + more for name, more in parts.items()})
