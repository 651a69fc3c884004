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
from memcached_operator.core.objects.workload_types import Mount

SCRIPTS: Final = "operator-scripts"
"""Name of the volume."""
FOLDER: Final = f"{MOUNTED}/scripts"
MOUNT: Final = Mount(SCRIPTS, FOLDER, readOnly=True)
_DIGEST_BYTES: Final = 5
_SUFFIX: Final = re.compile(f"{SCRIPTS_INFIX}[0-9a-f]{{{2 * _DIGEST_BYTES}}}$")

Scripts = tuple[tuple[str, str], ...]
"""Names of files, each with its text."""


@lru_cache
def script(path: Path) -> str:
    """The text of a script that stands beside the module of its feature."""
    return path.read_text()


@lru_cache
def suffix(scripts: Scripts) -> str:
    """The end of the name of the ConfigMap with these, after the Memcached's."""
    return SCRIPTS_INFIX + digest_of(msgspec.json.encode(scripts).decode())


def suffix_in(name: str) -> str:
    """Read that end off the name of an object; "" of one that has no scripts."""
    found = _SUFFIX.search(name)
    return found[0] if found else ""


@lru_cache
def digest_of(text: str) -> str:
    """The digest of a script, or of several."""
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest()
