"""Services: addresses and ports."""

from __future__ import annotations

import hashlib
import ipaddress
from dataclasses import replace
from typing import Final

from kube_simulator.errors import Cause
from kube_simulator.kinds.compaction import compact
from kube_simulator.kinds.kind_strategy import Strategy, with_subresource
from kube_simulator.schema.causes import invalid, required
from kube_simulator.values import Json

# The range that kubeadm gives to Services.
RANGE: Final = ipaddress.ip_network("10.96.0.0/16")
# Those at the beginning are handed out by name: the API server's own Service has the first.
_RESERVED: Final = 256
_OPEN_TYPES: Final = ("LoadBalancer", "NodePort")  # to the outside
_KEPT: Final = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")


def _default(new: Json) -> Json:
    spec = _typed(new)
    if spec.get("ports"):
        spec["ports"] = [
            {"protocol": "TCP", **each, "targetPort": each.get("targetPort") or each.get("port", 0)}
            for each in spec["ports"]
        ]
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["type"] in _OPEN_TYPES:
        spec.setdefault("externalTrafficPolicy", "Cluster")
    return {**new, "spec": spec, "status": compact(new.get("status"))}


def _typed(new: Json) -> Json:
    return {"type": "ClusterIP", "sessionAffinity": "None", **compact(new.get("spec"))}


def _complete(new: Json, _old: Json | None) -> Json:
    """Add an address, where it is of a type that has one."""
    spec, metadata = new["spec"], new["metadata"]
    if spec["type"] == "ExternalName":
        return new
    drawn = str(RANGE[_RESERVED + _digest(metadata) % (RANGE.num_addresses - _RESERVED - 1)])
    address = spec.get("clusterIP") or next(iter(spec.get("clusterIPs") or []), "") or drawn
    addresses = {"clusterIP": address, "clusterIPs": spec.get("clusterIPs") or [address]}
    return {**new, "spec": {"ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", **spec, **addresses}}


def _digest(metadata: Json) -> int:
    text = f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _prepare_update(new: Json, old: Json, subresource: str) -> Json:
    if subresource == "status":
        return _BASE.prepare_update(new, old, subresource)
    spec, before = _typed(new), old["spec"]
    if spec["type"] != "ExternalName" and not spec.get("clusterIP"):
        spec |= {key: before[key] for key in _KEPT if key in before and not spec.get(key)}
    return _BASE.prepare_update({**new, "spec": spec}, old, subresource)


def _validate(new: Json, old: Json | None) -> list[Cause]:
    spec, before = new["spec"], (old or new)["spec"].get("clusterIP")
    found = []
    if not spec.get("ports") and spec["type"] != "ExternalName" and spec.get("clusterIP") != "None":
        found.append(required("spec.ports"))
    if before and spec.get("clusterIP") not in (None, before):
        found.append(invalid("spec.clusterIPs[0]", spec.get("clusterIPs"), "may not change once set"))
    return found


_BASE: Final = with_subresource(_default, _validate, first_status={"loadBalancer": {}}, generation=False)
STRATEGY: Final[Strategy] = replace(_BASE, prepare_update=_prepare_update, complete=_complete)
