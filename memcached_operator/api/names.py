"""How the resource is called, and what its fields can hold.

Apart from the models, so that a process which needs only this loads no pydantic.
"""

from __future__ import annotations

from typing import Final

GROUP: Final = "cache.example.com"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "Memcached"
PLURAL: Final = "memcacheds"
FINALIZER: Final = "finalizer.cache.example.com"
"""Keeps a deleted Memcached until its pods are gone, with --finalizer."""

SIZE_MAX: Final = 2**31 - 1
# A repository of 255 characters, ":" and a tag of 128, "@" and a sha512 digest: the longest that registries take.
IMAGE_MAX_LENGTH: Final = 255 + 1 + 128 + 1 + len("sha512:") + 128
# Every character of a reference's grammar, so that a slip such as a space is refused at once.
IMAGE_CHARACTERS: Final = r"[-A-Za-z0-9_.:/@+\[\]]"


class InvalidSpec(ValueError):
    """A specification that cannot be acted on; the message names each wrong field, what it holds, and the remedy."""
