"""Pure: the list of servers as a ConfigMap, for clients that follow a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from memcached_operator.memcached.labels import APPLIED_OPTIONS_ANNOTATION, metadata
from memcached_operator.memcached.spec import Spec
from memcached_operator.memcached.wanted.applied_options import mark, taken
from memcached_operator.memcached.wanted.common import Manifest

_SUFFIX: Final = "-servers"
_LIST, _JSON = "servers", "servers.json"


class PublicationManifest(Manifest, frozen=True, omit_defaults=True):
    """A ConfigMap, as far as a Memcached has an opinion about it.

    `immutable` is read alone: somebody else sets it, or nobody. Nothing in `data` can be changed then.
    """

    data: dict[str, str] | None = None
    immutable: bool | None = None


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
    if spec.publish is None:
        return None
    mark = taken({_LIST: list(servers)}.items())
    return PublicationManifest(
        apiVersion="v1",
        kind="ConfigMap",
        metadata=metadata(
            name,
            namespace,
            uid,
            name=publication_name(name),
            annotations={APPLIED_OPTIONS_ANNOTATION: mark} if mark else None,
        ),
        data=_data(servers),
    )


def is_untouched(live: PublicationManifest) -> bool:
    """Whether the list is as it was written, so that another one that is wanted is nobody's doing but ours."""
    servers = listed(live)
    as_marked = taken({_LIST: servers}.items()) == mark(live)
    return as_marked and (live.data or {}).items() >= _data(servers).items()


def listed(live: PublicationManifest) -> list[str]:
    """The servers that a ConfigMap names; none where that cannot be read."""
    try:
        return msgspec.json.decode((live.data or {})[_JSON], type=list[str])
    except (KeyError, msgspec.MsgspecError):
        return []


def _data(servers: Sequence[str]) -> dict[str, str]:
    return {_LIST: "".join(f"{each}\n" for each in servers), _JSON: msgspec.json.encode(list(servers)).decode()}
