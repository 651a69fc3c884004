"""Pure: the list of servers as a ConfigMap, for clients that follow a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from memcached_operator.memcached.labels import metadata
from memcached_operator.memcached.objects import Manifest
from memcached_operator.memcached.spec import Spec

_SUFFIX: Final = "-servers"


class PublicationManifest(Manifest, frozen=True, omit_defaults=True):
    """A ConfigMap, as far as a Memcached has an opinion about it."""

    data: dict[str, str] | None = None


def publication_name(name: str) -> str:
    """The ConfigMap's name."""
    return name + _SUFFIX


def publisher(name: str) -> str:
    """The name of the Memcached whose ConfigMap has this name."""
    return name.removesuffix(_SUFFIX)


def publication(name: str, namespace: str, uid: str, spec: Spec, servers: Sequence[str]) -> PublicationManifest | None:
    """The ConfigMap that a Memcached of that name, namespace and uid wants, if it wants one.

    Args:
        servers: `host:port` of each, in their order.
    """
    if spec.publish == "None":
        return None
    return PublicationManifest(
        apiVersion="v1",
        kind="ConfigMap",
        metadata=metadata(name, namespace, uid, name=publication_name(name)),
        data={
            "servers": "".join(f"{each}\n" for each in servers),
            "servers.json": msgspec.json.encode(list(servers)).decode(),
        },
    )
