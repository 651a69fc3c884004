"""`cache.example.com/v1alpha1`: the status of a Memcached, as a user reads it; source of its schema."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field

from memcached_operator.api.names import (
    PENDING,
    Workload,
)
from memcached_operator.api.v1alpha1 import ATOMIC, Count, Memory, Model

# Without a condition, tools that judge an object by its status would take a new one for ready.
_UNSEEN: Final[list[Any]] = [
    {
        "type": "Ready",
        "status": "Unknown",
        "reason": PENDING,
        "message": "Waiting for the operator.",
        "lastTransitionTime": "1970-01-01T00:00:00Z",
    }
]
_Generation = Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})]


class MemcachedCondition(Model):
    """One aspect of the current state."""

    type: Annotated[
        str,
        Field(
            max_length=316,
            pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
            r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        ),
    ] = Field(
        description="Type of the condition. The operator sets Ready, Available, Progressing, Degraded, Serving, "
        "Retaining and Discouraged; other controllers may add their own."
    )
    status: Literal["True", "False", "Unknown"] = Field(description="Status of the condition: True, False or Unknown.")
    reason: Annotated[
        str, Field(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
    ] = Field(description="Machine-readable reason for the last transition or update, in one CamelCase word.")
    message: Annotated[str, Field(max_length=32768)] = Field(
        description="Human-readable message with details. Can be empty."
    )
    last_transition_time: datetime = Field(description="Last time the condition changed from one status to another.")
    observed_generation: _Generation | None = Field(
        default=None, description="The metadata.generation for which the condition was set."
    )


class MemcachedDrain(Model):
    """Servers that left the list and still run."""

    workload: Workload = Field(description="Kind of the workload that runs these servers: Deployment or StatefulSet.")
    first_ordinal: Count = Field(description="Lowest ordinal of these servers. All higher ordinals drain as well.")
    start_time: datetime = Field(description="When these servers left the list.")


class MemcachedHandoverStatus(Model):
    """Progress of the last change of the list with a hand-over."""

    step: Literal["Preparing", "Connecting", "Published", "Disconnecting", "Complete"] = Field(
        description="Preparing: all servers get ready, and items of former owners are deleted. Connecting: all "
        "servers get all others as peers. Published: clients follow the list. Disconnecting: servers have no peers "
        "any more. Complete: nothing is under way."
    )
    start_time: datetime = Field(description="Since when it is at this step.")
    former_list_end_time: datetime | None = Field(
        default=None, description="From when on no client has the list before the present one."
    )


class MemcachedStatus(Model):
    """Most recently observed state of the Memcached. Written by the operator."""

    # The default of `conditions` does not apply where there is no status to hold it.
    model_config = ConfigDict(json_schema_extra={"default": {"conditions": _UNSEEN}})

    nodes: list[str] | None = Field(
        default=None,
        description="Names of the memcached pods that are neither terminating nor finished, sorted.",
        json_schema_extra=ATOMIC,
    )
    replicas: Count | None = Field(default=None, description="Number of memcached pods.")
    ready_replicas: Count | None = Field(default=None, description="Number of memcached pods that are ready.")
    selector: str | None = Field(
        default=None,
        description="Label selector of the memcached pods, in the format of kubectl get pods --selector. Used by the "
        "scale subresource.",
    )
    image: str | None = Field(
        default=None,
        description="Container image that the servers run. During a rollout of another image, the previous one.",
    )
    version: str | None = Field(
        default=None, description="Version of memcached that the servers report. Absent if no server was queried."
    )
    workload: Workload | None = Field(
        default=None,
        description="Kind of the workload that runs the servers of the list: Deployment or StatefulSet. During a move "
        "from one to the other, the previous one.",
    )
    service: str | None = Field(
        default=None, description="Name of the Service that the operator created. Absent if there is none."
    )
    server_list: list[str] | None = Field(
        default=None,
        description="Servers for clients to use, each as host:port. For a StatefulSet, the stable DNS names of the "
        "servers, ordered by ordinal. For a Deployment, the addresses of its ready pods, sorted.",
        json_schema_extra=ATOMIC,
    )
    memory: Memory | None = Field(
        default=None,
        description="Memory of each server for items that is in force: spec.memory, or what it has grown to by "
        "spec.memoryScaling.",
    )
    recommended_memory: Memory | None = Field(
        default=None,
        description="Smallest memory of each server, by an estimate, with which spec.memoryScaling.retention would be "
        "kept. Absent while it is not known, or not less than the memory in force.",
    )
    draining: list[MemcachedDrain] | None = Field(
        default=None,
        description="Servers that left the list and still run, until spec.drainSeconds have passed.",
        json_schema_extra=ATOMIC,
    )
    handover: MemcachedHandoverStatus | None = Field(
        default=None, description="The hand-over between servers, if spec.handover is set and the list is complete."
    )
    pending_writes: list[str] | None = Field(
        default=None,
        description="Kinds of objects that the operator has yet to write for this generation, because the API server "
        "failed or refused. Absent if there are none.",
        json_schema_extra=ATOMIC,
    )
    observed_generation: _Generation | None = Field(
        default=None, description="The metadata.generation that the operator observed last."
    )
    conditions: list[MemcachedCondition] | None = Field(
        default=None,
        description="Latest observations of the state. Ready: everything specified exists and is "
        "ready. Available: enough servers are ready. Progressing: a change is being rolled out. Degraded: something "
        "requires manual intervention. Serving: the servers answer requests. Retaining: items "
        "stay for spec.memoryScaling.retention; present only with that field. Discouraged: something is specified "
        "that is not recommended; present only while it is True.",
        json_schema_extra={"default": _UNSEEN, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )
