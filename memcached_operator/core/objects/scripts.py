"""Pure: the scripts that run in containers: where they stand, and the name of the ConfigMap that has them."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec

from memcached_operator.api.names import MOUNTED
from memcached_operator.core.objects.labels import SCRIPTS_INFIX
from memcached_operator.core.objects.owned_object import Manifest
from memcached_operator.core.objects.workload_types import Mount

SCRIPTS: Final = "operator-scripts"
"""Name of the volume."""
FOLDER: Final = f"{MOUNTED}/scripts"
MOUNT: Final = Mount(SCRIPTS, FOLDER, readOnly=True)
_DIGEST_BYTES: Final = 5
_SUFFIX: Final = re.compile(f"{SCRIPTS_INFIX}[0-9a-f]{{{2 * _DIGEST_BYTES}}}$")

Scripts = tuple[tuple[str, str], ...]
"""Names of files, each with its text."""


class ConfigMapManifest(Manifest, frozen=True, omit_defaults=True):
    data: dict[str, str] | None = None
    immutable: bool | None = None


@lru_cache
def script(path: Path) -> str:
    """The text of a script that stands beside the module of its feature."""
    return path.read_text()


@lru_cache
def suffix(scripts: Scripts) -> str:
    """The end of the name of the ConfigMap with these, after the Memcached's."""
    return SCRIPTS_INFIX + _digest(msgspec.json.encode(scripts).decode())


def suffix_in(name: str) -> str:
    """Read that end off the name of an object; "" of one that has no scripts."""
    found = _SUFFIX.search(name)
    return found[0] if found else ""


def held(manifest: ConfigMapManifest) -> ConfigMapManifest:
    """A ConfigMap as the cache holds it, and as it is compared: scripts, some 50 KiB in each, by their digests."""
    if not _SUFFIX.search(manifest.metadata.name or ""):
        return manifest
    return msgspec.structs.replace(manifest, data={name: _digest(text) for name, text in (manifest.data or {}).items()})


@lru_cache
def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest()
