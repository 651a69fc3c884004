"""`cache.example.com/v1alpha1`: the Memcached resource as a user writes and reads it.

The models are the source of the CustomResourceDefinition's schema, and of what the operator accepts: a specification
that the API server let through, say under an older schema, is checked here again before anything is done with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from memcached_operator.api.complaints import explained
from memcached_operator.api.names import (
    DRAIN_SECONDS,
    DRAIN_SECONDS_MAX,
    GRACE_PERIOD_SECONDS_MAX,
    IMAGE_CHARACTERS,
    IMAGE_MAX_LENGTH,
    PERCENTAGE,
    SIZE_MAX,
    InvalidSpec,
    Publish,
    ServiceType,
    Workload,
    refuse_contradiction,
)

SINGULAR: Final = "memcached"
SHORT_NAMES: Final = ("mc",)
CATEGORIES: Final = ("all",)

# The name is also the value of a label and fit to be a Service's: an RFC 1035 label, a letter first, at most 63
# characters. 11 of these ("-" and 10) are left for what a Deployment adds to name its ReplicaSets.
NAME_PATTERN: Final = "^[a-z]([-a-z0-9]*[a-z0-9])?$"
NAME_MAX_LENGTH: Final = 52

_Count = Annotated[int, Field(ge=0, le=SIZE_MAX, json_schema_extra={"format": "int32"})]
_Image = Annotated[
    str,
    Field(
        min_length=1,
        max_length=IMAGE_MAX_LENGTH,
        # A CEL rule would say it in words, but a kind with one CEL rule has the API server add "some validation rules
        # were not checked" to each message about any other field.
        pattern=f"^{IMAGE_CHARACTERS}*$",
    ),
]
# A PodDisruptionBudget's own type. In the schema one field of two types, with the rules of both.
_CountOrShare = Annotated[
    Annotated[int, Field(ge=0, le=SIZE_MAX)] | Annotated[str, Field(pattern=f"^{PERCENTAGE}$")],
    Field(json_schema_extra={"x-kubernetes-int-or-string": True}),
]
_DrainSeconds = Annotated[int, Field(ge=0, le=DRAIN_SECONDS_MAX, json_schema_extra={"format": "int32"})]
_GraceSeconds = Annotated[int, Field(ge=0, le=GRACE_PERIOD_SECONDS_MAX, json_schema_extra={"format": "int64"})]
# What Kubernetes has a type for, and we pass on: every field of it is kept, and the API server judges it there.
_Passed = dict[str, Any]
_Generation = Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})]


class _Model(BaseModel):
    # Strict: "3", 3.0 and true are not numbers, as they are not for the API server. Unknown fields are ignored: the
    # API server prunes them, and an older operator may meet an object of a newer schema.
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True)


class MemcachedService(_Model):
    """The Service by which clients find the servers; it bears the Memcached's name."""

    type: ServiceType | None = Field(
        default=None,
        description="Headless: the name stands for the addresses of all servers, and each server of a StatefulSet has "
        "a name below it. ClusterIP: one address in front of all of them, which picks any server for each connection; "
        "good for one server. None: no Service is made. Headless where it is left out. "
        "A StatefulSet cannot have ClusterIP.",
    )
    annotations: dict[str, str] | None = Field(
        default=None, description="Annotations of the Service, besides those of the operator."
    )
    labels: dict[str, str] | None = Field(
        default=None, description="Labels of the Service, besides those of the operator."
    )


class MemcachedDisruptionBudget(_Model):
    """How many servers may be away at once when nodes are drained: the PodDisruptionBudget of the Memcached's name."""

    max_unavailable: _CountOrShare | None = Field(
        default=None,
        description="A number of servers, or a share of them such as 25%, rounded up. 1 where it is left out. "
        "With 100% no PodDisruptionBudget is made.",
    )


class MemcachedPod(_Model):
    """What the pods have besides what the operator gives them, as the specification of a pod has it.

    The API server judges it where it stands in the workload; what it refuses is told in the condition Degraded.
    """

    labels: dict[str, str] | None = Field(
        default=None, description="Labels of the pods; those that the operator sets cannot be changed."
    )
    annotations: dict[str, str] | None = Field(
        default=None, description="Annotations of the pods; those that the operator sets cannot be changed."
    )
    node_selector: dict[str, str] | None = Field(
        default=None, description="Labels that a node must have for a pod to run there."
    )
    tolerations: list[_Passed] | None = Field(default=None, description="Taints of nodes that the pods tolerate.")
    affinity: _Passed | None = Field(
        default=None, description="Which nodes the pods are to run on, and next to which other pods or apart from them."
    )
    topology_spread_constraints: list[_Passed] | None = Field(
        default=None,
        description="How the pods are to be spread over nodes, zones and the like, in place of what the operator says.",
    )
    priority_class_name: str | None = Field(default=None, description="Name of the pods' PriorityClass.")
    image_pull_secrets: list[_Passed] | None = Field(
        default=None, description="References, each with a name, to Secrets by which nodes pull the image."
    )
    service_account_name: str | None = Field(
        default=None, description="Name of the ServiceAccount that the pods run as; the namespace's default without it."
    )
    security_context: _Passed | None = Field(
        default=None,
        description="Security settings of the pods, on top of runAsNonRoot and the seccomp profile RuntimeDefault. "
        "With it the operator sets no user id: {} leaves that to the cluster, as OpenShift wants it.",
    )
    termination_grace_period_seconds: _GraceSeconds | None = Field(
        default=None, description="Seconds that a server has to end by itself. Kubernetes' 30 where it is left out."
    )


class MemcachedNetworkPolicy(_Model):
    """Who may connect to the servers: the NetworkPolicy of the Memcached's name."""

    from_: list[_Passed] = Field(
        alias="from",
        description="Peers that may connect to the servers, each as a NetworkPolicy has it: podSelector, "
        "namespaceSelector or ipBlock. An empty list lets nobody in but the operator.",
    )


class MemcachedSpec(_Model):
    """What is wanted: how many memcached servers, of which image, and how clients find them."""

    size: _Count = Field(default=1, description="How many memcached pods to run; 0 runs none. 1 where it is left out.")
    image: _Image | None = Field(
        default=None,
        description="Container image that the pods run, such as docker.io/library/memcached:1.6.45-alpine. "
        "Where it is left out, the operator's own setting decides, and may change with the operator.",
    )
    workload: Workload | None = Field(
        default=None,
        description="What runs the pods. With a StatefulSet each server has a name that lasts, NAME-0.NAME and so on, "
        "which more than one server should have; with a Deployment a server's address changes with its pod. "
        "Deployment where it is left out. A change of it moves the servers: the new ones are made beside the old.",
    )
    service: MemcachedService | None = None
    disruption_budget: MemcachedDisruptionBudget | None = Field(
        default=None,
        description="How many servers may be away at once when nodes are drained. Where it is left out: 1 from size 2 "
        "on, and no PodDisruptionBudget below.",
    )
    pod: MemcachedPod | None = None
    network_policy: MemcachedNetworkPolicy | None = Field(
        default=None,
        description="Who may connect to the servers. Where it is left out no NetworkPolicy is made, and everybody may "
        "whom no other one keeps away.",
    )
    publish: Publish | None = Field(
        default=None,
        description="Where the list of servers is published besides status.serverList. ConfigMap: in the ConfigMap "
        "NAME-servers, as lines (servers) and as JSON (servers.json). None: nowhere. None where it is left out.",
    )
    drain_seconds: _DrainSeconds | None = Field(
        default=None,
        description="Seconds that a server runs on after it left the list, for clients to learn of that. "
        f"{DRAIN_SECONDS} where it is left out.",
    )


class MemcachedCondition(_Model):
    """One aspect of the state: whether it holds, since when, and why."""

    type: Annotated[
        str,
        Field(
            max_length=316,
            pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
            r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        ),
    ] = Field(
        description="Which aspect: Available, Progressing, Degraded, Ready, or one that somebody else keeps here."
    )
    status: Literal["True", "False", "Unknown"] = Field(description="Whether it holds: True, False or Unknown.")
    reason: Annotated[
        str, Field(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
    ] = Field(description="Why, in one word for programs.")
    message: Annotated[str, Field(max_length=32768)] = Field(description="Why, in words for people; may be empty.")
    last_transition_time: datetime = Field(description="When status last changed.")
    observed_generation: _Generation | None = Field(
        default=None, description="The metadata.generation of the Memcached that this condition speaks of."
    )


class MemcachedDrain(_Model):
    """Servers that left the list and run on for a while."""

    workload: Workload = Field(description="What runs them: Deployment or StatefulSet.")
    first: _Count = Field(description="The lowest ordinal of those servers; all from it on are meant.")
    since: datetime = Field(description="When they left the list.")


class MemcachedStatus(_Model):
    """What the operator last saw; it alone writes this."""

    nodes: list[str] | None = Field(
        default=None, description="Sorted names of the memcached pods that are neither terminating nor finished."
    )
    replicas: _Count | None = Field(default=None, description="How many memcached pods there are.")
    ready_replicas: _Count | None = Field(
        default=None, description="How many of the memcached pods are ready to serve."
    )
    selector: str | None = Field(
        default=None,
        description="Label selector of the memcached pods, in the form of kubectl get pods --selector; "
        "a HorizontalPodAutoscaler finds them by it.",
    )
    image: str | None = Field(
        default=None,
        description="Container image that the memcached pods run, whoever decided it; while another one is rolled out, "
        "the one before.",
    )
    workload: Workload | None = Field(
        default=None,
        description="What runs the servers of the list: Deployment or StatefulSet; while they move from one to the "
        "other, the one before.",
    )
    service: str | None = Field(
        default=None, description="Name of the Service that the operator made; absent where it made none."
    )
    server_list: list[str] | None = Field(
        default=None,
        description="The servers for clients, each as host:port. Of a StatefulSet their lasting names in the order of "
        "their ordinals; of a Deployment the addresses of its ready pods, sorted.",
    )
    draining: list[MemcachedDrain] | None = Field(
        default=None, description="Servers that left the list and still run, until spec.drainSeconds are over."
    )
    observed_generation: _Generation | None = Field(
        default=None, description="The metadata.generation that this status speaks of."
    )
    conditions: list[MemcachedCondition] | None = Field(
        default=None,
        description="Available: enough pods serve. Progressing: a change is being rolled out. "
        "Degraded: something needs a person. Ready: all that the specification asks for is there and serves.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )


def validate_spec(raw: object) -> MemcachedSpec:
    """The specification in `raw`, the value of `spec`: decoded, or bytes of JSON; None or b"" where it is absent.

    Raises:
        InvalidSpec: a field has the wrong type or is out of its limits, or two contradict each other.
    """
    if raw in (None, b"", b"null"):
        return MemcachedSpec()
    try:
        if isinstance(raw, bytes):
            spec = MemcachedSpec.model_validate_json(raw)
        else:
            spec = MemcachedSpec.model_validate(dict(raw) if isinstance(raw, Mapping) else raw)
    except ValidationError as error:
        raise InvalidSpec(explained(error)) from None
    refuse_contradiction(spec.workload, spec.service.type if spec.service else None)
    return spec
