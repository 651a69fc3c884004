"""Pure: the scripts that run in containers, and the ConfigMap from which pods have them.

It is immutable and named by its content, so that a pod keeps the scripts that it was made with, and other ones are a
change of its template. It is there while a workload or a pod names it.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec

from memcached_operator.api.names import MOUNTED
from memcached_operator.core.objects.labels import SCRIPTS_INFIX, MemcachedOwner
from memcached_operator.core.objects.owned_object import Manifest, metadata
from memcached_operator.core.objects.workload_types import Mount

SCRIPTS: Final = "operator-scripts"
"""Name of the volume."""
FOLDER: Final = f"{MOUNTED}/scripts"
MOUNT: Final = Mount(SCRIPTS, FOLDER, readOnly=True)
_DIGEST_BYTES: Final = 5
_SUFFIX: Final = re.compile(f"{SCRIPTS_INFIX}[0-9a-f]{{{2 * _DIGEST_BYTES}}}$")


_texts: Final[dict[str, str]] = {}  # by their digests

Scripts = tuple[tuple[str, str], ...]
"""Names of files, each with its text."""


class ConfigMapManifest(Manifest, frozen=True, omit_defaults=True):
    """A ConfigMap, as far as a Memcached has an opinion about it.

    Attributes:
        data: digests of scripts, some 50 KiB in each; of another one its texts.
        immutable: as scripts are.
    """

    data: dict[str, str] | None = None
    immutable: bool | None = None

    def body(self) -> dict[str, Any]:
        """Convert to the dict that a manifest has, with the scripts themselves."""
        made = super().body()
        return made | {"data": {name: _texts.get(text, text) for name, text in (self.data or {}).items()}}


@lru_cache
def script(path: Path) -> str:
    """The text of a script that stands beside the module of its feature."""
    return path.read_text()


@lru_cache
def suffix(scripts: Scripts) -> str:
    """The end of the name of the ConfigMap with these, after the Memcached's."""
    return SCRIPTS_INFIX + _digest(msgspec.json.encode(scripts))


def suffix_in(name: str) -> str:
    """Read that end off the name of an object; "" of one that has no scripts."""
    found = _SUFFIX.search(name)
    return found[0] if found else ""


def scripts_config_map(owner: MemcachedOwner, scripts: Scripts) -> ConfigMapManifest:
    """The ConfigMap with the scripts of a Memcached's pods."""
    meta = metadata(owner, name=owner.name + suffix(scripts))
    return ConfigMapManifest(apiVersion="v1", kind="ConfigMap", metadata=meta, data=_digests(scripts), immutable=True)


@lru_cache
def _digests(scripts: Scripts) -> dict[str, str]:
    found = {name: _digest(text.encode()) for name, text in scripts}
    _texts.update((found[name], text) for name, text in scripts)
    return found


def held(live: ConfigMapManifest) -> ConfigMapManifest:
    """A live ConfigMap as the cache holds it: scripts by their digests."""
    if not suffix_in(live.metadata.name or ""):
        return live
    data = {name: _digest(text.encode()) for name, text in (live.data or {}).items()}
    return msgspec.structs.replace(live, data=data)


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).hexdigest()
