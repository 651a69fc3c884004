"""Services: addresses and ports.

Differs from Kubernetes: cluster addresses and node ports are derived from the Service's namespace and name, so that
two Services may (rarely) come to have the same; one family of addresses, IPv4, is served, and nothing routes to it. Of
ports and selectors the shape alone is checked, any cluster address may be asked for, and a change of type frees
nothing.
"""

from __future__ import annotations

import hashlib
import ipaddress
from dataclasses import replace
from itertools import count
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
_NODE_PORTS: Final = range(30000, 32768)
_OPEN_TYPES: Final = ("LoadBalancer", "NodePort")  # to the outside
_KEPT: Final = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")


def _default(new: Json) -> Json:
    spec = _typed(new)
    if spec["sessionAffinity"] == "ClientIP":
        spec.setdefault("sessionAffinityConfig", {"clientIP": {"timeoutSeconds": 10800}})
    if spec.get("ports"):
        spec["ports"] = [
            {"protocol": "TCP", **each, "targetPort": each.get("targetPort") or each.get("port", 0)}
            for each in spec["ports"]
        ]
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["type"] in _OPEN_TYPES:
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    return {**new, "spec": spec, "status": compact(new.get("status"))}


def _typed(new: Json) -> Json:
    return {"type": "ClusterIP", "sessionAffinity": "None", **compact(new.get("spec"))}


def _complete(new: Json, _old: Json | None) -> Json:
    """Add addresses and node ports, where it is of a type that has them."""
    spec, metadata = new["spec"], new["metadata"]
    if spec["type"] == "ExternalName":
        return new
    free = RANGE.num_addresses - _RESERVED - 1
    drawn = str(RANGE[_RESERVED + _digest(metadata, "address") % free])
    address = spec.get("clusterIP") or next(iter(spec.get("clusterIPs") or []), "") or drawn
    both = address == "None" and not spec.get("selector")
    spec = {
        "ipFamilies": ["IPv4", "IPv6"] if both else ["IPv4"],
        "ipFamilyPolicy": "RequireDualStack" if both else "SingleStack",
        **spec,
        "clusterIP": address,
        "clusterIPs": spec.get("clusterIPs") or [address],
    }
    if spec["type"] in _OPEN_TYPES:
        drawn_ports = (_NODE_PORTS[_digest(metadata, f"port {at}") % len(_NODE_PORTS)] for at in count())
        ports = zip(spec.get("ports") or (), drawn_ports, strict=False)
        spec["ports"] = [{**each, "nodePort": each.get("nodePort") or drawn} for each, drawn in ports]
    return {**new, "spec": spec}


def _digest(metadata: Json, purpose: str) -> int:
    text = "/".join((metadata.get("namespace") or "", metadata.get("name") or "", purpose))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _prepare_update(new: Json, old: Json, subresource: str) -> Json:
    if subresource == "status":
        return _BASE.prepare_update(new, old, subresource)
    spec, before = _typed(new), old["spec"]
    if spec["type"] != "ExternalName" and not spec.get("clusterIP"):
        spec |= {key: before[key] for key in _KEPT if key in before and not spec.get(key)}
    if before.get("clusterIP") not in (None, spec.get("clusterIP")) and spec.get("clusterIPs") == before["clusterIPs"]:
        spec["clusterIPs"] = [spec["clusterIP"]]  # a client that knows the older of the two fields
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
