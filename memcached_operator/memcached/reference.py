"""docs/api.md: what a Memcached can hold, and what its conditions can say, from the CRD and the reasons themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from memcached_operator.api import names
from memcached_operator.memcached.crd import memcached_crd
from memcached_operator.memcached.observation import Reason
from operator_runtime import crd_reference

CONDITIONS: Final[Mapping[str, str]] = {
    "Ready": "Is all that the specification asks for there, and does it serve?",
    "Available": "Do enough servers serve?",
    "Progressing": "Is a change on its way?",
    "Degraded": "Must somebody do something?",
    "Serving": "Do its servers answer?",
    "Discouraged": "Does the specification ask for what is not recommended?",
}


class Bearing(NamedTuple):
    """In which condition, at which status, a reason stands."""

    type: str
    status: str


class Told(NamedTuple):
    """What the page says of a reason."""

    bearings: tuple[Bearing, ...]
    meaning: str


_NOT_READY = Bearing("Ready", "False")
_TROUBLE = (Bearing("Progressing", "False"), Bearing("Degraded", "True"), _NOT_READY)
_WAITS_FOR_SECRET = (Bearing("Degraded", "True"), _NOT_READY)
_DISCOURAGED = (Bearing("Discouraged", "True"),)
_ON_ITS_WAY = (Bearing("Progressing", "True"), _NOT_READY)

# A unit test holds the bearings against what `status_of` makes of all that can be observed.
REASONS: Final[Mapping[Reason, Told]] = {
    Reason.PENDING: Told(
        (Bearing("Ready", "Unknown"),),
        "The operator has not looked at it yet. The API server fills in this condition, so that nothing takes a new "
        "Memcached for ready.",
    ),
    Reason.MINIMUM_REPLICAS_AVAILABLE: Told(
        (Bearing("Available", "True"),), "At most a quarter of the servers, rounded down, is not ready."
    ),
    Reason.MINIMUM_REPLICAS_UNAVAILABLE: Told(
        (Bearing("Available", "False"),), "More are not ready; the message counts them and names the commonest cause."
    ),
    Reason.DEPLOYING: Told(_ON_ITS_WAY, "The first rollout."),
    Reason.SCALING: Told(_ON_ITS_WAY, "Servers are being added or removed."),
    Reason.UPDATING: Told(_ON_ITS_WAY, "Pods of the former template are being replaced."),
    Reason.MIGRATING: Told(
        _ON_ITS_WAY,
        "`spec.workload` has changed: the new servers are made, or the old ones leave; the message says which.",
    ),
    Reason.TERMINATING: Told(
        _ON_ITS_WAY,
        "It is being deleted and carries the finalizer; the message names the pods that it waits for.",
    ),
    Reason.COMPLETE: Told((Bearing("Progressing", "False"),), "All servers have been rolled out."),
    Reason.DEADLINE_EXCEEDED: Told(
        (Bearing("Progressing", "False"), _NOT_READY), "Pods have not become ready for 10 minutes; the rollout goes on."
    ),
    Reason.NOT_CONTROLLED: Told(
        _TROUBLE,
        "An object or a pod of a name that ours should have belongs to somebody else. Only where it is the workload's "
        "is nothing changed, and Progressing False.",
    ),
    Reason.INVALID_SPEC: Told(
        (Bearing("Available", "Unknown"), Bearing("Ready", "Unknown"), *_TROUBLE),
        "A field is wrong, or the API server refused an object; the message says which and what is allowed. "
        "Available and Ready are Unknown where the specification cannot be read.",
    ),
    Reason.FORBIDDEN: Told(_TROUBLE, "A permission is missing: the operator's, or that of who makes the pods."),
    Reason.DENIED_BY_POLICY: Told(
        _TROUBLE,
        "A policy is against an object or the pods: an admission webhook, an admission policy, Pod Security, a "
        "LimitRange. The message has its words.",
    ),
    Reason.REVERTED: Told(
        _TROUBLE,
        "Something undoes the operator's change of an object, such as a mutating webhook; the message says of which "
        "field.",
    ),
    Reason.IMMUTABLE: Told(
        _TROUBLE,
        "A field of an object is not as it must be, and Kubernetes lets nobody change it; the message says which.",
    ),
    Reason.QUOTA_EXCEEDED: Told(_TROUBLE, "A ResourceQuota is against an object or the pods."),
    Reason.TERMINATION_STALLED: Told(
        (Bearing("Degraded", "True"), _NOT_READY),
        "Pods that are being deleted do not end, so that none is made in their place, or so that the workload that "
        "the servers have moved from does not go; or the Memcached is being deleted, and its pods or its workload do "
        "not go. The message names what stays, and the remedy.",
    ),
    Reason.CONFLICTING_DISRUPTION_BUDGET: Told(
        (Bearing("Degraded", "True"), _NOT_READY),
        "Another PodDisruptionBudget selects the pods, so that the operator creates none.",
    ),
    Reason.AS_EXPECTED: Told((Bearing("Degraded", "False"),), "Nothing is in the way."),
    Reason.ALL_SERVERS_READY: Told((Bearing("Ready", "True"),), "All that the specification asks for is there."),
    Reason.SERVERS_NOT_READY: Told((_NOT_READY,), "A server is not ready, although nothing is being changed."),
    Reason.ROLLOUT_STUCK: Told(
        (Bearing("Degraded", "True"), _NOT_READY),
        "A server of the new template does not get ready or cannot be made, so that no other is replaced; the message "
        "names it.",
    ),
    Reason.SECRET_NOT_FOUND: Told(
        _WAITS_FOR_SECRET, "New servers wait for the Secret of `spec.tls` or `spec.auth`, which the message names."
    ),
    Reason.CERTIFICATE_INVALID: Told(
        _WAITS_FOR_SECRET,
        "New servers wait for a Secret of `spec.tls` that memcached takes; the message names the key, and what is "
        "wrong.",
    ),
    Reason.PASSWORDS_INVALID: Told(
        _WAITS_FOR_SECRET,
        "New servers wait for a Secret of `spec.auth` that memcached takes; the message names the line, or what is "
        "missing.",
    ),
    Reason.RELOAD_UNSUPPORTED: Told(
        _WAITS_FOR_SECRET,
        "New servers are not started, as their memcached is older than 1.6.40 and would keep a certificate until it "
        "has expired.",
    ),
    Reason.ROLLOUT_PAUSED: Told(
        (Bearing("Progressing", "False"), _NOT_READY),
        "Servers are yet to be replaced, and `spec.rollout.paused` is set.",
    ),
    Reason.WAITING: Told((_NOT_READY,), "An object is being replaced or deleted; the message says which."),
    Reason.ANSWERING: Told((Bearing("Serving", "True"),), "All servers that are ready answer."),
    Reason.NOT_ANSWERING: Told(
        (Bearing("Serving", "False"),), "Servers that are ready do not answer; the message says which, and why."
    ),
    Reason.CONNECTIONS_EXHAUSTED: Told(
        (Bearing("Serving", "False"),),
        "Servers have as many connections as `spec.maxConnections` allows and turn others away; the message says "
        "which.",
    ),
    Reason.CERTIFICATE_EXPIRED: Told(
        (Bearing("Serving", "False"),),
        "Servers show a certificate that has expired; the message says which, and since when.",
    ),
    Reason.CERTIFICATE_STALE: Told(
        (Bearing("Serving", "False"),),
        "Servers still show an older certificate ten minutes after another began to show a newer one; the message says "
        "which.",
    ),
    Reason.NOT_ASKED: Told(
        (Bearing("Serving", "Unknown"),),
        "Nobody asks them, there is none, they want credentials that the operator has not, or none can be connected to "
        "from where the operator runs; the message says which.",
    ),
    Reason.LOAD_BALANCED_SERVERS: Told(
        _DISCOURAGED, "`spec.service.type: ClusterIP` with more than one server: a client finds a key only by chance."
    ),
    Reason.PASSWORDS_IN_THE_CLEAR: Told(
        _DISCOURAGED, "`spec.auth` without `spec.tls`: passwords are sent unencrypted."
    ),
}


def api_reference() -> str:
    """The page, from its title on."""
    name = (
        "Lower-case letters, digits and `-`, a letter first. It is also the name of what is made of it, and the value "
        "of a label."
    )
    return "\n".join(
        [
            f"# {names.KIND}: every field",
            "",
            "<!-- Made by `./dev api-docs` from memcached_operator/api/v1alpha1.py; do not edit. -->",
            "",
            "What the API server takes, fills in and refuses is what the CustomResourceDefinition says, and this page "
            f"is made from it. `kubectl explain {names.PLURAL}.spec` tells the same on a cluster. Unknown fields are "
            "removed by the API server; `kubectl` warns of them.",
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
        "[What a Memcached tells](conditions.md#conditions) says when exactly each stands there, "
        "[Operations](operations.md#reasons-of-conditions) what to do about it.",
        "",
        "| Reason | Condition | Meaning |",
        "|---|---|---|",
    ]
    for reason, told in REASONS.items():
        bearings = ", ".join(f"{bearing.type} `{bearing.status}`" for bearing in told.bearings)
        lines.append(f"| `{reason}` | {bearings} | {told.meaning} |")
    return [*lines, ""]
