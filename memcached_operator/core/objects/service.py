"""Pure: the Service by which clients find the servers of a Memcached."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

import msgspec

from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects.applied_spec import applied_spec, applied_text
from memcached_operator.core.objects.labels import APPLIED_ANNOTATION, PORT, PORT_NAME, MemcachedOwner, selector_labels
from memcached_operator.core.objects.owned_kind import CachedResource, OwnedKind
from memcached_operator.core.objects.owned_object import Codec, Manifest, metadata
from operator_runtime import Difference, Fields, differences, names_of, no_longer

HEADLESS: Final = "None"
"""The `clusterIP` of a Service without an address of its own, whose name resolves to those of its pods."""
_SINGLE_STACK: Final = "SingleStack"


class ServicePort(Fields, frozen=True, omit_defaults=True):  # `ports[]` of a Service
    name: str | None = None
    port: int | None = None
    protocol: str | None = None
    targetPort: int | str | None = None


class ServiceSpec(Fields, frozen=True, omit_defaults=True):
    """`spec` of a Service. An address that Kubernetes has given out is left out."""

    absent: ClassVar[tuple[str, ...]] = ("clusterIP",)
    whole: ClassVar[tuple[str, ...]] = ("selector",)

    clusterIP: str | None = None
    ipFamilyPolicy: str | None = None
    ports: tuple[ServicePort, ...] | None = None
    publishNotReadyAddresses: bool | None = None
    selector: dict[str, str] | None = None
    type: str | None = None


class ServiceManifest(Manifest, frozen=True, omit_defaults=True):
    spec: ServiceSpec = ServiceSpec()


def _normalized(live: ServiceManifest) -> ServiceManifest:
    spec = live.spec
    return msgspec.structs.replace(
        live,
        spec=msgspec.structs.replace(
            spec,
            clusterIP=HEADLESS if spec.clusterIP == HEADLESS else None,
            ipFamilyPolicy=_owned_policy(spec.ipFamilyPolicy),
            publishNotReadyAddresses=bool(spec.publishNotReadyAddresses),  # the API server leaves out what is false
        ),
    )


def _compare(desired: ServiceManifest, live: ServiceManifest) -> Iterator[Difference]:
    yield from differences(desired, live)
    if (former := applied_spec(live.metadata.annotations)) is not None:
        given = {"labels": former.service.labels, "annotations": former.service.annotations}
        yield from no_longer({"metadata": names_of(given)}, desired.body(), live.body())
        policy = _owned_policy(former.service.ipFamilyPolicy)
        if policy is not None and desired.spec.ipFamilyPolicy is None and live.spec.ipFamilyPolicy == policy:
            yield Difference(("spec", "ipFamilyPolicy"), _SINGLE_STACK, policy)


def _owned_policy(policy: str | None) -> str | None:
    """Policy that is owned; not the default of Kubernetes: a Service that the cluster makes dual-stack stays so."""
    return None if policy == _SINGLE_STACK else policy


def service(owner: MemcachedOwner, spec: Spec, *, named: bool = False) -> ServiceManifest | None:
    """The Service that a Memcached desires, if it desires one.

    Args:
        named: clients know its servers by names that the Service gives them, also where no StatefulSet runs them.
    """
    desired = spec.service
    if desired.type == "Disabled":
        return None
    named_only = {field: dict.fromkeys(getattr(desired, field), "") for field in ("annotations", "labels")}
    kept = spec.model_copy(update={"service": desired.model_copy(update=named_only)})
    return ServiceManifest(
        apiVersion="v1",
        kind="Service",
        metadata=metadata(
            owner,
            more_labels=desired.labels,
            annotations=desired.annotations | {APPLIED_ANNOTATION: applied_text(kept, ("service",))},
        ),
        spec=ServiceSpec(
            clusterIP=HEADLESS if desired.type == "Headless" else None,
            ipFamilyPolicy=_owned_policy(desired.ipFamilyPolicy),
            ports=(ServicePort(desired.portName, PORT, "TCP", PORT_NAME),),
            # Names must not come and go with a server's readiness. Where it has none, its address must.
            publishNotReadyAddresses=named or spec.workload == "StatefulSet",
            selector=selector_labels(owner.name),
            type="ClusterIP",
        ),
    )


# Neither can a Service get an address that has none, nor lose it.
_CODEC: Final = Codec(ServiceManifest, _normalized, _compare, fixed=("spec.clusterIP",), replace="Background")
SERVICES: Final = OwnedKind(
    CachedResource(("v1", "Service", "services"), _CODEC.record), _CODEC, lambda owner, spec, _: service(owner, spec)
)


def with_names(spec: Spec) -> Spec:
    """The specification, with a Service that gives servers names."""
    return spec.model_copy(update={"service": spec.service.model_copy(update={"type": "Headless"})})
