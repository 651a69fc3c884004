"""NetworkPolicies: defaults and rules.

Differs from Kubernetes: nothing is enforced (as on a cluster whose network plugin does not know them), and addresses
that are written in an unusual way are not warned of.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Final

from kube_simulator.errors import Cause
from kube_simulator.kinds.base import Strategy, plain
from kube_simulator.kinds.causes import between, forbidden, invalid, not_supported, one_of, required
from kube_simulator.kinds.compaction import NETWORKING_V1, compact
from kube_simulator.kinds.containers import MAX_PORT, port_problems
from kube_simulator.kinds.selectors import selector_problems
from kube_simulator.kinds.sharing import completed, mapped, shared
from kube_simulator.values import Json

# Kubernetes' names of a direction, of its rules and of its peers.
_DIRECTIONS: Final = (("Ingress", "ingress", "from"), ("Egress", "egress", "to"))
_TYPES: Final = ("Ingress", "Egress")
_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")


def _default(new: Json) -> Json:
    spec = compact(new.get("spec") or {}, f"{NETWORKING_V1}NetworkPolicySpec")
    rules = {rules: mapped(_rule, spec[rules]) for _, rules, _ in _DIRECTIONS if spec.get(rules)}
    types = spec.get("policyTypes") or ["Ingress", *(["Egress"] if spec.get("egress") else [])]
    return {**new, "spec": shared({**spec, **rules, "policyTypes": types}, spec)}


def _rule(rule: Json) -> Json:
    if not rule.get("ports"):
        return rule
    ports = mapped(lambda port: completed(port, {"protocol": "TCP"}), rule["ports"])
    return shared({**rule, "ports": ports}, rule)


def _validate(new: Json, _old: Json | None) -> list[Cause]:
    spec = new["spec"]
    found = selector_problems(spec["podSelector"], "spec.podSelector")
    for field, rule, peers in _rules(spec):
        for index, port in enumerate(rule.get("ports") or []):
            found += _port_problems(port, f"{field}.ports[{index}]")
        for index, peer in enumerate(rule.get(peers) or []):
            found += _peer_problems(peer, f"{field}.{peers}[{index}]")
    types = spec["policyTypes"]
    if len(types) > len(_TYPES):
        return [*found, invalid("spec.policyTypes", types, "may not specify more than two policyTypes")]
    unknown = [(index, each) for index, each in enumerate(types) if each not in _TYPES]
    return found + [not_supported(f"spec.policyTypes[{index}]", each, _TYPES) for index, each in unknown]


def _rules(spec: Json) -> Iterator[tuple[str, Json, str]]:
    """Each rule with where it stands, and the field of its peers."""
    for _, rules, peers in _DIRECTIONS:
        for index, rule in enumerate(spec.get(rules) or []):
            yield f"spec.{rules}[{index}]", rule, peers


def _port_problems(port: Json, field: str) -> list[Cause]:
    found = one_of(f"{field}.protocol", port.get("protocol"), _PROTOCOLS)
    first, last, at = port.get("port"), port.get("endPort"), f"{field}.endPort"
    if first is not None:
        found += port_problems(first, f"{field}.port")
    if last is None:
        return found
    if first is None:
        return [*found, invalid(at, last, "may not be specified when `port` is not specified")]
    if isinstance(first, str):
        return [*found, invalid(at, last, "may not be specified when `port` is non-numeric")]
    if last < first:
        found.append(invalid(at, first, "must be greater than or equal to `port`"))
    return found + between(at, last, 1, MAX_PORT)


def _peer_problems(peer: Json, field: str) -> list[Cause]:
    found: list[Cause] = []
    selectors = [key for key in ("podSelector", "namespaceSelector") if peer.get(key) is not None]
    for key in selectors:
        found += selector_problems(peer[key], f"{field}.{key}")
    block = peer.get("ipBlock")
    if block is not None:
        found += _block_problems(block, f"{field}.ipBlock")
    if block is None and not selectors:
        found.append(required(field, "must specify a peer"))
    elif block is not None and selectors:
        found.append(forbidden(field, "may not specify both ipBlock and another peer"))
    return found


def _block_problems(block: Json, field: str) -> list[Cause]:
    if not block["cidr"]:
        return [required(f"{field}.cidr")]
    found: list[Cause] = []
    whole = _network(block["cidr"], f"{field}.cidr", found)
    for index, each in enumerate(block.get("except") or [] if whole is not None else []):
        at = f"{field}.except[{index}]"
        part = _network(each, at, found)
        if part is None or whole is None:
            continue
        if part.version != whole.version or part.network_address not in whole or part.prefixlen <= whole.prefixlen:
            found.append(invalid(at, each, "must be a strict subset of `cidr`"))
    return found


def _network(text: str, at: str, found: list[Cause]) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """The addresses that a text names; None, and a word on it in `found`, if it names none."""
    try:
        if "/" in text:
            return ipaddress.ip_network(text, strict=False)
    except ValueError:
        pass
    found.append(invalid(at, text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"))
    return None


STRATEGY: Strategy = plain(_default, _validate, generation=True)
