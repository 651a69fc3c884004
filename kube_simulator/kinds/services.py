"""Services: addresses and ports.

Differs from Kubernetes: cluster addresses and node ports are derived from the Service's namespace and name, so that
two Services may (rarely) come to have the same; what has had ports on nodes, or is to lead elsewhere, cannot change its
type (501); one family of addresses, IPv4, is served, and nothing routes to it. Of ports and selectors the shape alone
is checked, and any cluster address may be asked for.
"""

from __future__ import annotations

import hashlib
import ipaddress

from kube_simulator.errors import Cause, not_implemented
from kube_simulator.kinds.compaction import CORE_V1, compact
from kube_simulator.kinds.field_causes import invalid, one_of, required
from kube_simulator.kinds.kind_strategy import Strategy, with_subresource
from kube_simulator.values import Json

# The range that kubeadm gives to Services.
RANGE = ipaddress.ip_network("10.96.0.0/16")
# Those at the beginning are handed out by name: the API server's own Service has the first.
_RESERVED = 256
_NODE_PORTS = range(30000, 32768)
_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_OPEN_TYPES = ("LoadBalancer", "NodePort")  # to the outside
_STICKY_S = 10800
_KEPT = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")


def _default(new: Json) -> Json:
    spec = _typed(new.get("spec") or {})
    if spec["sessionAffinity"] == "ClientIP":
        spec.setdefault("sessionAffinityConfig", {"clientIP": {"timeoutSeconds": _STICKY_S}})
    if spec.get("ports"):
        spec["ports"] = [_port(each) for each in spec["ports"]]
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if spec["type"] in _OPEN_TYPES:
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    return {**new, "spec": spec, "status": compact(new.get("status") or {}, f"{CORE_V1}ServiceStatus")}


def _typed(spec: Json) -> Json:
    return {"type": "ClusterIP", "sessionAffinity": "None", **compact(spec, f"{CORE_V1}ServiceSpec")}


def _port(port: Json) -> Json:
    target = port.get("targetPort") or port.get("port", 0)
    return {"protocol": "TCP", **port, "targetPort": target}


def _complete(new: Json, _old: Json | None) -> Json:
    """Add addresses and node ports, where it is of a type that has them."""
    spec, metadata = new["spec"], new["metadata"]
    if spec["type"] == "ExternalName":
        return new
    address = spec.get("clusterIP") or next(iter(spec.get("clusterIPs") or []), "") or _drawn_address(metadata)
    spec = {**spec, "clusterIP": address, "clusterIPs": spec.get("clusterIPs") or [address]}
    both = address == "None" and not spec.get("selector")
    spec.setdefault("ipFamilies", ["IPv4", "IPv6"] if both else ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "RequireDualStack" if both else "SingleStack")
    if spec["type"] in _OPEN_TYPES:
        spec["ports"] = [
            {**each, "nodePort": each.get("nodePort") or _drawn_port(metadata, index)}
            for index, each in enumerate(spec.get("ports") or [])
        ]
    return {**new, "spec": spec}


def _drawn_address(metadata: Json) -> str:
    free = RANGE.num_addresses - _RESERVED - 1
    return str(RANGE[_RESERVED + _digest(metadata, "address") % free])


def _drawn_port(metadata: Json, index: int) -> int:
    return _NODE_PORTS[_digest(metadata, f"port {index}") % len(_NODE_PORTS)]


def _digest(metadata: Json, purpose: str) -> int:
    text = "/".join((metadata.get("namespace") or "", metadata.get("name") or "", purpose))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


_BASE = with_subresource(_default, first_status={"loadBalancer": {}}, generation=False)


def _prepare_update(new: Json, old: Json, subresource: str) -> Json:
    if subresource == "status":
        return _BASE.prepare_update(new, old, subresource)
    spec, before = _typed(new.get("spec") or {}), old["spec"]
    if spec["type"] != before["type"] and (before["type"] in _OPEN_TYPES or spec["type"] == "ExternalName"):
        raise not_implemented(f"a Service's change from {before['type']} to {spec['type']}")
    if spec["type"] != "ExternalName" and not spec.get("clusterIP"):
        spec |= {key: before[key] for key in _KEPT if key in before and not spec.get(key)}
    if before.get("clusterIP") not in (None, spec.get("clusterIP")) and spec.get("clusterIPs") == before["clusterIPs"]:
        spec["clusterIPs"] = [spec["clusterIP"]]  # a client that knows the older of the two fields
    return _BASE.prepare_update({**new, "spec": spec}, old, subresource)


def _validate(new: Json, old: Json | None) -> list[Cause]:
    spec = new["spec"]
    kind = spec["type"]
    found: list[Cause] = []
    if not spec.get("ports") and kind != "ExternalName" and spec.get("clusterIP") != "None":
        found.append(required("spec.ports"))
    found += one_of("spec.type", kind, _TYPES)
    return found if kind == "ExternalName" else found + _address_problems(spec, old)


def _address_problems(spec: Json, old: Json | None) -> list[Cause]:
    """List what is wrong with addresses, those that the server has filled in among them."""
    address, field = spec.get("clusterIP"), "spec.clusterIPs[0]"
    if address is None:
        return []
    if address == "None" and spec["type"] in _OPEN_TYPES:
        return [invalid(field, address, f"may not be set to 'None' for {spec['type']} services")]
    before = (old or {}).get("spec", {}).get("clusterIP")
    if before and before != address:
        return [invalid(field, spec.get("clusterIPs"), "may not change once set")]
    return []


STRATEGY = Strategy(_BASE.prepare_create, _prepare_update, _default, _validate, _complete)
