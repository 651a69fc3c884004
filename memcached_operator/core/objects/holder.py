"""Pure: the holder of a server's items while the server is replaced, and what new pods are made with meanwhile.

A holder is the one pod of a StatefulSet of its own, of the template that new servers have, and on no list.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from memcached_operator.api.quantities import mebibytes, of_mebibytes
from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects.labels import HOLDER_ANNOTATION, POD_ANNOTATIONS, labels, selector_labels
from memcached_operator.core.objects.owned_object import ObjectMeta
from memcached_operator.core.objects.workload_types import GRACE_S, LabelSelector, PodTemplateSpec, WorkloadManifest
from operator_runtime import ObjectKey

_SUFFIX: Final = "-holder"
HELD_NAME_MAX_LENGTH: Final = 45
"""Length of a Memcached's name beyond which its holder's pod could not have the label of its revision."""
# In labels: no Memcached can be called so, whose Service would select the holder.
_LABEL_SUFFIX: Final = ".holder"
# For a page of marks in each size class: with as much memory as the server has, up to 4.6 % of a full one was lacking.
_MORE_MIB: Final = 3


class Moving(NamedTuple):
    """Requirements of moves on objects and on the rollout.

    Attributes:
        made_with: annotations with which new servers are to be made.
        released: uids of pods that may be replaced now, although they are ready.
        overrides: fields by which the objects beside the servers are made otherwise.
    """

    made_with: Mapping[str, str] = {}
    released: frozenset[str] = frozenset()
    message: str = ""
    overrides: Mapping[str, Any] = {}


def holder_key(memcached: ObjectKey) -> ObjectKey:
    return ObjectKey(memcached.namespace, memcached.name + _SUFFIX)


def holder_label(name: str) -> str:
    """The label `memcached_cr` of the holder's pod, by the Memcached's name."""
    return name + _LABEL_SUFFIX


def with_room(spec: Spec) -> Spec:
    """The specification by which a holder is made: it has somewhat more memory than the server."""
    return spec.model_copy(update={"memory": of_mebibytes(mebibytes(spec.memory) + _MORE_MIB)})


def holder(servers: WorkloadManifest, annotations: Mapping[str, str]) -> WorkloadManifest:
    """The StatefulSet of a holder.

    Args:
        servers: the one of a Memcached's servers, made by `with_room` of its specification.
    """
    name = f"{servers.metadata.name}{_SUFFIX}"
    label = holder_label(servers.metadata.name or "")
    meta = replace(servers.metadata, name=name, labels=_renamed(servers.metadata, label))
    made = with_annotations(servers, annotations)
    pod = made.template.metadata or ObjectMeta()
    template = replace(made.template, metadata=replace(pod, labels=_renamed(pod, label)))
    selector = LabelSelector(selector_labels(label))
    spec = replace(made.spec, replicas=1, selector=selector, serviceName=name, template=_at_once(template))
    return replace(made, metadata=meta, spec=spec)


def _at_once(made: PodTemplateSpec) -> PodTemplateSpec:
    """A holder ends without a wait: nobody moves what it has."""
    assert made.spec is not None
    containers = tuple(replace(each, lifecycle=None) for each in made.spec.containers or ())
    return replace(made, spec=replace(made.spec, containers=containers, terminationGracePeriodSeconds=GRACE_S))


def with_annotations(servers: WorkloadManifest, annotations: Mapping[str, str]) -> WorkloadManifest:
    """A workload whose new pods have these annotations of a move, and no others."""
    meta = servers.template.metadata or ObjectMeta()
    kept = meta.annotations or {}
    if not (annotations or HOLDER_ANNOTATION in kept):
        return servers
    made = {name: text for name, text in kept.items() if name not in POD_ANNOTATIONS} | dict(annotations)
    template = replace(servers.template, metadata=replace(meta, annotations=made))
    return replace(servers, spec=replace(servers.spec, template=template))


def _renamed(meta: ObjectMeta, name: str) -> dict[str, str]:
    return (meta.labels or {}) | labels(name)
