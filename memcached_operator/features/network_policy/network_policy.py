"""Pure: the NetworkPolicy that limits who may reach the servers of a Memcached."""

from __future__ import annotations

from typing import Any, ClassVar, Final

import msgspec

from memcached_operator.api.names import TELL_PORT
from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects import labels
from memcached_operator.core.objects.holder import holder_label
from memcached_operator.core.objects.owned_kind import CachedResource, OwnedKind
from memcached_operator.core.objects.owned_object import Codec, Manifest, metadata
from memcached_operator.core.objects.passed_options import canonical_options
from operator_runtime import Fields

# By which the operator's own pods are known, in its own namespace; each of its manifests has this label.
_OPERATOR_LABELS: Final = {"app.kubernetes.io/name": "memcached-operator"}
_NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"


class PolicySpec(Fields, frozen=True, omit_defaults=True):  # `spec` of a NetworkPolicy
    whole: ClassVar[tuple[str, ...]] = ("podSelector",)

    ingress: tuple[dict[str, Any], ...] | None = None
    podSelector: dict[str, Any] | None = None
    policyTypes: tuple[str, ...] | None = None


class PolicyManifest(Manifest, frozen=True, omit_defaults=True):
    spec: PolicySpec = PolicySpec()


def _normalized(live: PolicyManifest) -> PolicyManifest:
    # The API server leaves out an empty list; the desired form has it, for no rules.
    return msgspec.structs.replace(live, spec=msgspec.structs.replace(live.spec, ingress=live.spec.ingress or ()))


def network_policy(owner: labels.MemcachedOwner, spec: Spec, operator_namespace: str) -> PolicyManifest:
    assert spec.networkPolicy is not None
    rules = [_rule(canonical_options(each.from_), labels.PORT) for each in spec.networkPolicy.ingress]
    operator = []
    if operator_namespace:
        operator.append(
            {
                "namespaceSelector": {"matchLabels": {_NAMESPACE_LABEL: operator_namespace}},
                "podSelector": {"matchLabels": _OPERATOR_LABELS},
            }
        )
        rules.append(_rule(operator, labels.PORT))
    servers = pods = _pods(owner.name, holder_label(owner.name) if spec.moves else "")
    if spec.has_endpoint:
        pods = _pods(owner.name, holder_label(owner.name) if spec.moves else "", labels.endpoint_label(owner.name))
    if spec.handover is not None:
        rules.append(_rule([{"podSelector": servers}, *operator], labels.PEERS_PORT))
    if spec.moves and operator:
        rules.append(_rule(operator, TELL_PORT))
    return PolicyManifest(
        apiVersion="networking.k8s.io/v1",
        kind="NetworkPolicy",
        metadata=metadata(owner),
        spec=PolicySpec(ingress=tuple(rules), podSelector=pods, policyTypes=("Ingress",)),
    )


def _pods(name: str, *others: str) -> dict[str, Any]:
    """The selector of the servers, and of other pods by their labels, "" for none."""
    if not any(others):
        return {"matchLabels": labels.selector_labels(name)}
    by_name = {"key": "memcached_cr", "operator": "In", "values": [name, *filter(None, others)]}
    return {"matchLabels": {"app": labels.selector_labels(name)["app"]}, "matchExpressions": [by_name]}


def _rule(peers: list[Any], port: int) -> dict[str, Any]:
    """A rule that admits these peers to a port; all where there are none."""
    return {**({"from": peers} if peers else {}), "ports": [{"port": port, "protocol": "TCP"}]}


_CODEC: Final = Codec(PolicyManifest, _normalized)
NETWORK_POLICIES: Final = OwnedKind(
    CachedResource(("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"), _CODEC.record, labels.POD_SELECTOR),
    _CODEC,
    lambda owner, spec, known: network_policy(owner, spec, known.operator_namespace),
    field="networkPolicy",
)
