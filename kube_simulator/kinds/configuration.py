"""ConfigMaps and Secrets.

Differs from Kubernetes: of the types of Secrets `kubernetes.io/tls` alone has rules.
"""

from __future__ import annotations

import base64
import binascii

from kube_simulator.errors import Cause
from kube_simulator.kinds.field_causes import IMMUTABLE, forbidden, invalid, required, too_long, unlike
from kube_simulator.kinds.kind_strategy import Strategy, plain
from kube_simulator.kinds.name_validation import config_key
from kube_simulator.values import Json

# k8s.io/api/core/v1: MaxSecretSize, which holds for ConfigMaps too.
LIMIT_BYTES = 2**20
_FROZEN = "field is immutable when `immutable` is set"


def _default_config_map(new: Json) -> Json:
    return {key: value for key, value in new.items() if not (key in ("data", "binaryData") and not value)}


def _default_secret(new: Json) -> Json:
    texts = new.get("stringData") or {}
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in texts.items()}
    data = {key: value or "" for key, value in {**(new.get("data") or {}), **encoded}.items()}
    rest = {key: value for key, value in new.items() if key not in ("data", "stringData", "type")}
    return {**rest, **({"data": data} if data else {}), "type": new.get("type") or "Opaque"}


def _config_map_problems(new: Json, old: Json | None) -> list[Cause]:
    data, binary = new.get("data") or {}, new.get("binaryData") or {}
    found: list[Cause] = []
    for key in data:
        found += unlike(f"data[{key}]", key, config_key(key))
        if key in binary:
            found.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
    for key in binary:
        found += unlike(f"binaryData[{key}]", key, config_key(key))
    size_bytes = sum(len(value.encode()) for value in data.values()) + sum(map(_decoded_bytes, binary.values()))
    if size_bytes > LIMIT_BYTES:
        found.append(too_long("[]", LIMIT_BYTES))
    return found + _frozen(new, old, ("data", "binaryData"))


def _secret_problems(new: Json, old: Json | None) -> list[Cause]:
    data, kind = new.get("data") or {}, new["type"]
    found: list[Cause] = []
    for key in data:
        found += unlike(f"data[{key}]", key, config_key(key))
    if sum(map(_decoded_bytes, data.values())) > LIMIT_BYTES:
        found.append(too_long("data", LIMIT_BYTES))
    if kind == "kubernetes.io/tls":
        found += [required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data]
    if old is not None and kind != old["type"]:
        found.append(invalid("type", kind, IMMUTABLE))
    return found + _frozen(new, old, ("data",))


def _frozen(new: Json, old: Json | None, fields: tuple[str, ...]) -> list[Cause]:
    """List what changed although the object was declared immutable."""
    if old is None or old.get("immutable") is not True:
        return []
    found = [] if new.get("immutable") is True else [forbidden("immutable", _FROZEN)]
    return found + [forbidden(key, _FROZEN) for key in fields if new.get(key) != old.get(key)]


def _decoded_bytes(encoded: str) -> int:
    try:
        return len(base64.b64decode(encoded))
    except binascii.Error:
        return len(encoded)


CONFIG_MAP: Strategy = plain(_default_config_map, _config_map_problems)
SECRET: Strategy = plain(_default_secret, _secret_problems)
