"""ConfigMaps and Secrets.

Differs from Kubernetes: the types of Secrets have no rules.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

from kube_simulator.errors import Cause
from kube_simulator.kinds.kind_strategy import Strategy, plain
from kube_simulator.names import config_key
from kube_simulator.schema.causes import IMMUTABLE, forbidden, invalid, too_long, unlike
from kube_simulator.values import Json

# k8s.io/api/core/v1: MaxSecretSize, which holds for ConfigMaps too.
LIMIT_BYTES: Final = 2**20


def _default_config_map(new: Json) -> Json:
    return {key: value for key, value in new.items() if not (key in ("data", "binaryData") and not value)}


def _default_secret(new: Json) -> Json:
    texts = new.get("stringData") or {}
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in texts.items()}
    data = {key: value or "" for key, value in {**(new.get("data") or {}), **encoded}.items()}
    rest = {key: value for key, value in new.items() if key not in ("data", "stringData", "type")}
    return {**rest, **({"data": data} if data else {}), "type": new.get("type") or "Opaque"}


def _problems(new: Json, old: Json | None) -> list[Cause]:
    data, binary = new.get("data") or {}, new.get("binaryData") or {}
    encoded = [*binary.values(), *(data.values() if new["kind"] == "Secret" else ())]
    found: list[Cause] = []
    for field, keys in (("data", data), ("binaryData", binary)):
        for key in keys:
            found += unlike(f"{field}[{key}]", key, config_key(key))
    size_bytes = sum(len(value.encode()) for value in data.values()) if new["kind"] != "Secret" else 0
    if size_bytes + sum(map(_decoded_bytes, encoded)) > LIMIT_BYTES:
        found.append(too_long("data", LIMIT_BYTES))
    if old is None:
        return found
    if new.get("type") != old.get("type"):
        found.append(invalid("type", new.get("type"), IMMUTABLE))
    if old.get("immutable") is True:
        changed = [key for key in ("immutable", "data", "binaryData") if new.get(key) != old.get(key)]
        found += [forbidden(key, "field is immutable when `immutable` is set") for key in changed]
    return found


def _decoded_bytes(encoded: str) -> int:
    try:
        return len(base64.b64decode(encoded))
    except binascii.Error:
        return len(encoded)


CONFIG_MAP: Final[Strategy] = plain(_default_config_map, _problems)
SECRET: Final[Strategy] = plain(_default_secret, _problems)
