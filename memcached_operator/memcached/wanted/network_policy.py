"""Pure: the NetworkPolicy that says who may reach the servers of a Memcached."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from memcached_operator.memcached.labels import PORT, metadata, selector_labels
from memcached_operator.memcached.spec import Spec
from memcached_operator.memcached.wanted.applied_options import as_kept
from memcached_operator.memcached.wanted.common import Manifest
from operator_runtime import Fields

# By which the operator's own pods are known, in its own namespace; each of its manifests has this label.
_OPERATOR_LABELS: Final = {"app.kubernetes.io/name": "memcached-operator"}
_NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"


class PolicySpec(Fields, frozen=True, omit_defaults=True):
    """`spec` of a NetworkPolicy."""

    whole: ClassVar[tuple[str, ...]] = ("podSelector",)

    ingress: tuple[dict[str, Any], ...] | None = None
    podSelector: dict[str, Any] | None = None
    policyTypes: tuple[str, ...] | None = None


class PolicyManifest(Manifest, frozen=True, omit_defaults=True):
    """A NetworkPolicy, as far as a Memcached has an opinion about it."""

    spec: PolicySpec = PolicySpec()


def network_policy(name: str, namespace: str, uid: str, spec: Spec, operator_namespace: str) -> PolicyManifest | None:
    """The NetworkPolicy that a Memcached of that name, namespace and uid wants, if it wants one.

    Args:
        operator_namespace: where the operator's own pods are, "" where it runs in no pod.
    """
    if spec.networkPolicy is None:
        return None
    peers = list(as_kept(spec.networkPolicy.allowFrom))
    if operator_namespace:
        peers.append(
            {
                "namespaceSelector": {"matchLabels": {_NAMESPACE_LABEL: operator_namespace}},
                "podSelector": {"matchLabels": _OPERATOR_LABELS},
            }
        )
    # A rule without peers would admit everybody; no rule at all admits nobody.
    rules = ({"from": peers, "ports": [{"port": PORT, "protocol": "TCP"}]},) if peers else ()
    return PolicyManifest(
        apiVersion="networking.k8s.io/v1",
        kind="NetworkPolicy",
        metadata=metadata(name, namespace, uid),
        spec=PolicySpec(ingress=rules, podSelector={"matchLabels": selector_labels(name)}, policyTypes=("Ingress",)),
    )
