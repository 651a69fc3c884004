"""docs/api.md: fields of a Memcached and reasons of its conditions, from the CRD and the reasons themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from lab.packaging.crd_reference import crd_reference
from memcached_operator.api import names
from memcached_operator.api.crd import memcached_crd
from memcached_operator.api.status import OWNED_CONDITIONS, Reason

CONDITIONS: Final[Mapping[str, str]] = {
    "Ready": "Does everything specified exist, and is it ready?",
    "Available": "Are enough servers ready?",
    "Progressing": "Is a change being rolled out?",
    "Degraded": "Action needed?",
    "Serving": "Do the servers answer?",
    "Discouraged": "Is a setting not recommended?",
    "Retaining": "Is the retention kept?",
    "HandingOver": "Is a hand-over under way?",
}


class Bearing(NamedTuple):
    """Condition and status in which a reason stands."""

    type: str
    status: str


class ReasonDoc(NamedTuple):
    """Documentation of a reason."""

    bearings: tuple[Bearing, ...]
    meaning: str


_NOT_READY, _DEGRADED = Bearing("Ready", "False"), Bearing("Degraded", "True")
_STOPPED = Bearing("Progressing", "False")
_FAILS = (_STOPPED, _DEGRADED, _NOT_READY)
_DEGRADES = (_DEGRADED, _NOT_READY)
_DISCOURAGED = (Bearing("Discouraged", "True"),)
_HANDING_OVER = (Bearing("HandingOver", "True"),)
_NOT_RETAINING = Bearing("Retaining", "False")
_UNKNOWN = (Bearing("Serving", "Unknown"), Bearing("Retaining", "Unknown"))
_IN_PROGRESS = (Bearing("Progressing", "True"), _NOT_READY)

# A unit test holds the bearings against what `status_of` makes of all that can be observed.
REASONS: Final[Mapping[Reason, ReasonDoc]] = {
    Reason.PENDING: ReasonDoc(
        tuple(Bearing(type_, "Unknown") for type_ in OWNED_CONDITIONS),
        "The operator has not observed the Memcached yet. The API server sets these conditions, so that a new "
        "Memcached never appears ready.",
    ),
    Reason.MINIMUM_REPLICAS_AVAILABLE: ReasonDoc(
        (Bearing("Available", "True"),), "At most a quarter of the servers, rounded down, are not ready."
    ),
    Reason.MINIMUM_REPLICAS_UNAVAILABLE: ReasonDoc(
        (Bearing("Available", "False"),),
        "More than that are not ready; the message counts them and names the most common cause.",
    ),
    Reason.DEPLOYING: ReasonDoc(_IN_PROGRESS, "The first rollout."),
    Reason.SCALING: ReasonDoc(_IN_PROGRESS, "Servers are being added or removed."),
    Reason.UPDATING: ReasonDoc(_IN_PROGRESS, "Pods of the previous template are being replaced."),
    Reason.MOVING: ReasonDoc(
        _IN_PROGRESS, "A server is being replaced, and its items move with it (`spec.handover.moves`)."
    ),
    Reason.MIGRATING: ReasonDoc(
        _IN_PROGRESS,
        "`spec.workload` has changed: the new servers are being created, or the old ones drain; the message names "
        "them.",
    ),
    Reason.TERMINATING: ReasonDoc(
        _IN_PROGRESS,
        "The Memcached is being deleted and has the finalizer; the message names the pods that it waits for.",
    ),
    Reason.COMPLETE: ReasonDoc(
        (_STOPPED, Bearing("HandingOver", "False")), "All servers have been rolled out. No hand-over is under way."
    ),
    Reason.DEADLINE_EXCEEDED: ReasonDoc(
        (_STOPPED, _NOT_READY), "Pods have not become ready for 10 minutes; the rollout continues."
    ),
    Reason.NOT_CONTROLLED: ReasonDoc(
        _FAILS,
        "An object or a pod with a name that the Memcached needs belongs to another owner. If it is the workload, "
        "nothing is changed, and Progressing is False.",
    ),
    Reason.INVALID_SPEC: ReasonDoc(
        (*(Bearing(type_, "Unknown") for type_ in ("Available", "Ready", "Discouraged")), *_FAILS),
        "A field is invalid, or the API server refused an object; the message names it and what is allowed. "
        "Available, Ready and Discouraged are Unknown if the specification cannot be read.",
    ),
    Reason.FORBIDDEN: ReasonDoc(
        _FAILS, "A permission is missing: the operator's, or that of the controller that creates the pods."
    ),
    Reason.DENIED_BY_POLICY: ReasonDoc(
        _FAILS,
        "A policy refuses an object or the pods: an admission webhook, an admission policy, Pod Security, a "
        "LimitRange, or another rule of the namespace or the cluster. The message quotes it.",
    ),
    Reason.REVERTED: ReasonDoc(
        _FAILS,
        "Another client reverts the operator's change of an object, such as a mutating webhook; the message names "
        "the field.",
    ),
    Reason.IMMUTABLE: ReasonDoc(
        _FAILS,
        "A field of an object is wrong, and Kubernetes does not allow it to change; the message names the field.",
    ),
    Reason.QUOTA_EXCEEDED: ReasonDoc(
        (*_FAILS, _NOT_RETAINING),
        "A ResourceQuota refuses an object or the pods, or more memory for running servers.",
    ),
    Reason.TERMINATION_STALLED: ReasonDoc(
        _DEGRADES,
        "Pods that are being deleted do not end, so that they are not replaced, or the previous workload is not "
        "deleted; or the Memcached is being deleted, and its pods or its workload are not. The message names what "
        "remains, and the remedy.",
    ),
    Reason.OPERATOR_IMAGE_UNKNOWN: ReasonDoc(
        _DEGRADES, "The operator does not know the image that it runs, from which it makes the pods of an endpoint."
    ),
    Reason.ENDPOINT_NOT_READY: ReasonDoc(
        _DEGRADES, "Pods of an endpoint cannot be created, or do not become ready in time; the message has why."
    ),
    Reason.CONFLICTING_DISRUPTION_BUDGET: ReasonDoc(
        _DEGRADES, "Another PodDisruptionBudget selects the pods, so the operator creates none."
    ),
    Reason.AS_EXPECTED: ReasonDoc(
        (Bearing("Degraded", "False"), Bearing("Discouraged", "False")),
        "There is no problem. Nothing is specified that is not recommended.",
    ),
    Reason.ALL_SERVERS_READY: ReasonDoc((Bearing("Ready", "True"),), "Everything specified exists and is ready."),
    Reason.SERVERS_NOT_READY: ReasonDoc((_NOT_READY,), "A server is not ready, although nothing is being changed."),
    Reason.ROLLOUT_STUCK: ReasonDoc(
        _DEGRADES,
        "A server of the new template does not become ready or cannot be created, so no other is replaced, or a "
        "change that should keep its keys emptied it, so no other is changed; the message names it.",
    ),
    Reason.MEMORY_LIMITED: ReasonDoc(
        _DEGRADES,
        "The memory limit of a running server is lower than what its memory needs, as after another client's change "
        "of its pod; the message names the server, and why the limit is not set back.",
    ),
    Reason.SECRET_NOT_FOUND: ReasonDoc(
        _DEGRADES, "New servers wait for the Secret of `spec.tls` or `spec.auth`, which the message names."
    ),
    Reason.CERTIFICATE_INVALID: ReasonDoc(
        _DEGRADES,
        "New servers wait for a Secret of `spec.tls` that memcached accepts; the message names the key and the "
        "problem.",
    ),
    Reason.PASSWORDS_INVALID: ReasonDoc(
        _DEGRADES,
        "New servers wait for a Secret of `spec.auth` that memcached accepts; the message names the line or what is "
        "missing.",
    ),
    Reason.RELOAD_UNSUPPORTED: ReasonDoc(
        _DEGRADES,
        "New servers are not started, because their memcached is older than 1.6.40 and would keep a certificate "
        "until it has expired.",
    ),
    Reason.RELOAD_FAILED: ReasonDoc(
        _DEGRADES,
        "Servers keep the former content of a changed Secret, because their sidecar may not signal them; the message "
        "names them.",
    ),
    Reason.ROLLOUT_PAUSED: ReasonDoc(
        (_STOPPED, _NOT_READY), "Servers have not been replaced yet, and `spec.rollout.paused` is true."
    ),
    Reason.WAITING: ReasonDoc(
        (_NOT_READY, _NOT_RETAINING),
        "An object is being replaced or deleted; the message names it. The memory grows once all servers can.",
    ),
    Reason.ANSWERING: ReasonDoc((Bearing("Serving", "True"),), "All ready servers answer."),
    Reason.NOT_ANSWERING: ReasonDoc(
        (Bearing("Serving", "False"),), "Ready servers do not answer; the message names them and the error."
    ),
    Reason.CONNECTIONS_EXHAUSTED: ReasonDoc(
        (Bearing("Serving", "False"),),
        "Servers have reached `spec.maxConnections` and turn connections away; the message names them.",
    ),
    Reason.DISK_IMPAIRED: ReasonDoc(
        (Bearing("Serving", "False"),),
        "The disks of servers with `spec.extstore` are damaged, slow, or slower than values come; the message names "
        "them and the problem.",
    ),
    Reason.CERTIFICATE_EXPIRED: ReasonDoc(
        (Bearing("Serving", "False"),),
        "Servers present an expired certificate; the message names them and the time of expiry.",
    ),
    Reason.CERTIFICATE_STALE: ReasonDoc(
        (Bearing("Serving", "False"),),
        "Servers still present an older certificate ten minutes after another presented a newer one; the message "
        "names them.",
    ),
    Reason.NOT_QUERIED: ReasonDoc(
        _UNKNOWN,
        "Servers are not queried, none is ready, or some have not answered yet; the message states the cause.",
    ),
    Reason.UNREACHABLE: ReasonDoc(_UNKNOWN, "The operator cannot connect to any server; the message states the error."),
    Reason.CREDENTIALS_MISSING: ReasonDoc(
        _UNKNOWN,
        "Servers require credentials that the operator lacks; the message names them.",
    ),
    Reason.RETENTION_KEPT: ReasonDoc(
        (Bearing("Retaining", "True"),),
        "What clients request is evicted no earlier than `spec.memoryScaling.retentionSeconds` after the last request "
        "for it.",
    ),
    Reason.MEMORY_UNUSED: ReasonDoc(
        (Bearing("Retaining", "True"),),
        "So is it, and less than half of the memory would have been enough for a day; the message states the amount.",
    ),
    Reason.OBSERVING: ReasonDoc(
        (Bearing("Retaining", "Unknown"),),
        "What the servers evict is not known for long enough yet, or another client changed the limit of a server; the "
        "message names the cause.",
    ),
    Reason.GROWING: ReasonDoc(
        (_NOT_RETAINING,),
        "Items that clients request were evicted too early, so the memory has grown; the message states the amount, "
        "and stays until the servers have been observed again.",
    ),
    Reason.MAXIMUM_REACHED: ReasonDoc(
        (_NOT_RETAINING,), "Such items are evicted, and the memory is at `spec.memoryScaling.max`."
    ),
    Reason.RESIZE_IMPOSSIBLE: ReasonDoc(
        (_NOT_RETAINING,),
        "Such items are evicted, and a running server cannot be given more memory: its node has no room, for example. "
        "All servers keep the memory that they have; the message names the server and the cause.",
    ),
    Reason.LOAD_BALANCED_SERVERS: ReasonDoc(
        _DISCOURAGED, "`spec.service.type: ClusterIP` with more than one server: a client finds a key only by chance."
    ),
    Reason.PASSWORDS_IN_THE_CLEAR: ReasonDoc(
        _DISCOURAGED, "`spec.auth` without `spec.tls`: passwords are sent unencrypted."
    ),
    Reason.DRAIN_TOO_SHORT: ReasonDoc(
        _DISCOURAGED,
        "Servers that left the list run on for less than the time after which clients of "
        "`spec.discovery.autoDiscovery` read it again; the message names the remedy.",
    ),
    Reason.HANDOVER_UNAVAILABLE: ReasonDoc(
        _DISCOURAGED,
        "The list of servers changes without the hand-over of `spec.handover`; the message states the cause.",
    ),
    Reason.PREPARING: ReasonDoc(_HANDING_OVER, "All servers get ready, and items of former owners are deleted."),
    Reason.CONNECTING: ReasonDoc(_HANDING_OVER, "All servers get all others as peers."),
    Reason.PUBLISHED: ReasonDoc(
        _HANDING_OVER, "Clients follow the list; servers fill themselves from each other until the time in the message."
    ),
    Reason.DISCONNECTING: ReasonDoc(_HANDING_OVER, "Servers stop filling themselves from each other."),
}


def api_reference() -> str:
    """The page, from its title on."""
    name = (
        "Lower-case letters, digits and `-`, starting with a letter. It is also the name of the objects that the "
        "operator creates, and the value of a label."
    )
    return "\n".join(
        [
            f"# {names.KIND} API reference",
            "",
            "<!-- Made by `./dev api-docs` from memcached_operator/api/v1alpha1.py; do not edit. -->",
            "",
            "This page is generated from the CustomResourceDefinition, which defines what the API server accepts, "
            f"defaults and refuses. `kubectl explain {names.PLURAL}.spec` shows the same on a cluster. The API "
            "server removes unknown fields; `kubectl` warns of them.",
            "",
            crd_reference(memcached_crd(), descriptions={"metadata.name": name}),
            *_conditions(),
        ]
    )


def _conditions() -> list[str]:
    lines = ["## Conditions", "", "| Type | Question |", "|---|---|"]
    lines += [f"| `{type_}` | {question} |" for type_, question in CONDITIONS.items()]
    lines += [
        "",
        "## Reasons of conditions",
        "",
        "[Status and conditions](conditions.md#conditions) says exactly when each reason is set, "
        "[Operations](operations.md#reasons-of-conditions) what to do about it.",
        "",
        "| Reason | Condition | Meaning |",
        "|---|---|---|",
    ]
    for reason, reason_entry in REASONS.items():
        bearings = ", ".join(f"{bearing.type} `{bearing.status}`" for bearing in reason_entry.bearings)
        lines.append(f"| `{reason}` | {bearings} | {reason_entry.meaning} |")
    return [*lines, ""]


if __name__ == "__main__":
    print(api_reference(), end="")
