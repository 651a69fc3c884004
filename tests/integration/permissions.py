"""What the operator needs each of its permissions for: something that works with it, and the log's words without it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memcached_operator.api.names import FINALIZER
from operator_runtime.testing.waiting import until
from tests.integration.accounts import LOCK
from tests.integration.conftest import memcached
from tests.integration.oracle import make_ready
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import IN_SYNC, OperatorProcess

SOON = ("--leader-elect-lease-duration-s=3", "--leader-elect-renew-deadline-s=2", "--leader-elect-retry-period-s=0.5")


@dataclass(frozen=True, slots=True)
class Trial:
    """One operator in a namespace, which may lack a permission, and what is done around it."""

    kubectl: Kubectl
    operator: OperatorProcess
    name: str
    """Of the Memcached that is made."""

    def kubectl_gets(self, what: str, *more: str) -> Any:
        """An object, or a list of them, decoded; None where there is none."""
        found = self.kubectl("get", what, *more, "--ignore-not-found", "-o", "json")
        return json.loads(found) if found.strip() else None

    def make(self) -> None:
        """A Memcached, up to its first status."""
        self.kubectl.apply(memcached(self.name, 1))
        self.kubectl.wait_field(f"mcd/{self.name}", ".status.replicas", 1)

    def scale_by_hand(self, times: int) -> None:
        """Change the Deployment's replicas and wait until the operator has put them right, again and again."""
        self.make()
        for number in range(1, times + 1):
            self.kubectl("scale", f"deployment/{self.name}", "--replicas=3")
            until(
                "the replicas are not put right",
                lambda number=number: len(self.logged("scaled Deployment from 3")) >= number,  # type: ignore[misc]
            )

    def logged(self, text: str) -> list[str]:
        """The log's lines about the Memcached that hold a text."""
        return [line for line in self.operator.lines if f"/{self.name}: " in line and text in line]


def nothing(_: object) -> None:
    """The operator's start is enough."""


@dataclass(frozen=True, slots=True)
class Use:
    """What one permission is good for.

    Attributes:
        verb: of the permission.
        resource: of the permission, a subresource after a slash.
        feature: what its absence takes away, in a user's words.
        works: whether it is there.
        words: in one line of the operator's log where the permission is missing.
        act: what has to happen for it.
        flags: that the operator is started with.
        before: what has to be there before it.
        streaming: False where only a server without streaming lists asks for the permission.
    """

    verb: str
    resource: str
    feature: str
    works: Callable[[Trial], bool]
    words: tuple[str, ...]
    act: Callable[[Trial], None] = nothing
    flags: tuple[str, ...] = ()
    before: Callable[[Kubectl], None] = nothing
    streaming: bool = True

    @property
    def permission(self) -> tuple[str, str]:
        return self.verb, self.resource


def _in_sync(trial: Trial) -> bool:
    return IN_SYNC in trial.operator.log


def _apply(trial: Trial) -> None:
    trial.kubectl.apply(memcached(trial.name, 1))


def _has_deployment(trial: Trial) -> bool:
    return trial.kubectl_gets(f"deployment/{trial.name}") is not None


_FORMER_LIMIT = "example.com/former-limit"


def _has_status(trial: Trial) -> bool:
    return "observedGeneration" in (trial.kubectl_gets(f"mcd/{trial.name}") or {"status": {}})["status"]


def _scale(trial: Trial) -> None:
    trial.make()
    trial.kubectl("scale", f"deployment/{trial.name}", "--replicas=3")


def _is_scaled(trial: Trial) -> bool:
    return trial.logged("scaled Deployment from 3") != []


def _bare(trial: Trial) -> None:
    trial.make()
    trial.kubectl("delete", f"deployment/{trial.name}")


def _disown(trial: Trial) -> None:
    trial.make()
    trial.kubectl("patch", f"deployment/{trial.name}", "--type=merge", "-p", '{"metadata":{"ownerReferences":null}}')


def _is_owned(trial: Trial) -> bool:
    return bool(trial.kubectl_gets(f"deployment/{trial.name}")["metadata"].get("ownerReferences"))


def _delete_with_the_finalizer(trial: Trial) -> None:
    held = memcached(trial.name, 0)
    held["metadata"]["finalizers"] = [FINALIZER]
    trial.kubectl.apply(held)
    trial.kubectl.wait_field(f"mcd/{trial.name}", ".status.replicas", 0)
    trial.kubectl("delete", f"mcd/{trial.name}", "--wait=false")


def _is_gone(trial: Trial) -> bool:
    return trial.kubectl_gets(f"mcd/{trial.name}") is None


def _names_the_rival(trial: Trial) -> bool:
    return any("contested: Another client" not in line for line in trial.logged("contested: "))


def _events(trial: Trial) -> list[dict[str, Any]]:
    found: dict[str, Any] = trial.kubectl_gets("events.events.k8s.io") or {"items": []}
    about = {"kind": "Memcached", "name": trial.name}
    return [each for each in found["items"] if about.items() <= each["regarding"].items()]


def _has_events(trial: Trial) -> bool:
    return _events(trial) != []


def _repeat_and_stop(trial: Trial) -> None:
    """What happened again is counted now and then, and at the end."""
    trial.scale_by_hand(times=2)
    until("there is no event", lambda: any(each["reason"] == "Scaled" for each in _events(trial)))
    trial.operator.stop()


def _counts(trial: Trial) -> bool:
    return any(each.get("series", {}).get("count", 1) > 1 for each in _events(trial))


def _with_a_named_server(trial: Trial, **more: object) -> None:
    """A Memcached whose one server is ready; its limit of memory is noted on that server, and on none after it."""
    spec: dict[str, object] = {
        "workload": "StatefulSet",
        "image": "memcached:1.6.44",
        "rollout": {"minReadySeconds": 0},
    } | more
    trial.kubectl.apply(memcached(trial.name, 1, **spec))
    pod = f"{trial.name}-0"
    trial.kubectl.wait(f"pod/{pod}", "create")
    trial.kubectl("annotate", f"pod/{pod}", f"{_FORMER_LIMIT}={_limit(trial.kubectl_gets(f'pod/{pod}'))}")
    make_ready(trial.kubectl, [pod])
    trial.kubectl.wait_field(f"mcd/{trial.name}", ".status.readyReplicas", 1)


def _limit(pod: Any) -> str:
    return str(pod["spec"]["containers"][0]["resources"]["limits"]["memory"])


def _former_limit(pod: Any) -> str | None:
    found: str | None = pod["metadata"].get("annotations", {}).get(_FORMER_LIMIT)
    return found


def _other(trial: Trial, **spec: object) -> None:
    _with_a_named_server(trial)
    trial.kubectl("patch", f"mcd/{trial.name}", "--type=merge", "-p", json.dumps({"spec": spec}))


def _more_memory(trial: Trial) -> None:
    _other(trial, memory="128Mi")


def _is_resized(trial: Trial) -> bool:
    pod = trial.kubectl_gets(f"pod/{trial.name}-0")
    return pod is not None and _former_limit(pod) not in (None, _limit(pod))


def _another_image(trial: Trial) -> None:
    _other(trial, image="memcached:1.6.45")


def _another_image_in_place(trial: Trial) -> None:
    _with_a_named_server(trial, warmRestart=True)
    trial.kubectl("patch", f"mcd/{trial.name}", "--type=merge", "-p", '{"spec":{"image":"memcached:1.6.45"}}')


def _is_given_the_image(trial: Trial) -> bool:
    pod = trial.kubectl_gets(f"pod/{trial.name}-0")
    return (
        pod is not None
        and _former_limit(pod) is not None
        and pod["spec"]["containers"][0]["image"] == "memcached:1.6.45"
    )


def _is_replaced(trial: Trial) -> bool:
    pod = trial.kubectl_gets(f"pod/{trial.name}-0")
    return pod is not None and _former_limit(pod) is None


def _have_no_room(trial: Trial) -> None:
    """A server that a quota has no room for, beside those of all others."""
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}}
    trial.kubectl.apply({**quota, "spec": {"hard": {"limits.memory": "50Gi"}}})
    trial.kubectl.apply(memcached(trial.name, 1, workload="StatefulSet", memory="100Gi"))
    trial.kubectl.wait(f"statefulset/{trial.name}", "create")
    # As the StatefulSet's controller does; the simulator's writes no events.
    about = trial.kubectl_gets(f"statefulset/{trial.name}")["metadata"]
    regarding = {"kind": "StatefulSet", "namespace": about["namespace"], "name": trial.name, "uid": about["uid"]}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": f"{trial.name}.1"}, "reason": "FailedCreate"}
    words = f"Create Pod {trial.name}-0 in StatefulSet {trial.name} failed error: exceeded quota: few"
    trial.kubectl.apply({**event, "type": "Warning", "message": words, "involvedObject": regarding})


def _reports_what_keeps_pods(trial: Trial) -> bool:
    conditions = (trial.kubectl_gets(f"mcd/{trial.name}") or {}).get("status", {}).get("conditions", [])
    return any(each["type"] == "Degraded" and each["reason"] == "QuotaExceeded" for each in conditions)


def _leads(trial: Trial) -> bool:
    return "leading: Lease" in trial.operator.log


def _renews(trial: Trial) -> bool:
    lease = trial.kubectl_gets(f"lease/{LOCK}")
    if lease is None:
        return False
    times = [datetime.fromisoformat(lease["spec"][name]) for name in ("acquireTime", "renewTime")]
    return times[0] < times[1]


def another_leads(kubectl: Kubectl) -> None:
    """For longer than a test takes, unless it lets go."""
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": LOCK}}
    kubectl.apply({**lease, "spec": {"holderIdentity": "another", "leaseDurationSeconds": 3600}})


def _let_go(trial: Trial) -> None:
    trial.operator.wait_for_log("waiting: Lease", "another")
    trial.kubectl("patch", "lease", LOCK, "--type=merge", "-p", '{"spec":{"holderIdentity":""}}')


def watching(
    resource: str,
    full_name: str,
    feature: str,
    *,
    works: Callable[[Trial], bool] = _in_sync,
    act: Callable[[Trial], None] = nothing,
) -> list[Use]:
    """What the list and the watch of a kind are good for."""

    def words(verb: str) -> tuple[str, ...]:
        return f"cannot watch {full_name} in", f'cannot {verb} resource "{resource}"', "Grant list and watch"

    lists = f"{feature}, on a server without streaming lists"
    return [
        Use("list", resource, lists, works, words("list"), act, streaming=False),
        Use("watch", resource, feature, works, words("watch"), act),
    ]


ELECT = ("--leader-elect", *SOON)
_NO_PART = "cannot take part in the election"
_FOR_LEASES = "Grant get, list, watch, create and patch"
_ALONE = "one of several replicas leads"
_LETS_GO = "a standby begins as soon as the leader lets go"
_STANDS: dict[str, Any] = {"flags": ELECT, "before": another_leads}


def use(
    permission: str,
    feature: str,
    works: Callable[[Trial], bool],
    act: Callable[[Trial], None],
    *words: str,
    **more: Any,
) -> Use:
    """What a permission, verb and resource, is good for, whose absence the API server's words tell beside these."""
    verb, resource = permission.split()
    return Use(verb, resource, feature, works, (*words, f'cannot {verb} resource "{resource}"'), act, **more)


_DEGRADED = "degraded: Forbidden"
RESIZED = "servers of a StatefulSet get other memory without a restart"
_RESIZED = (RESIZED, _is_resized, _more_memory)
_IN_PLACE = "servers with spec.warmRestart come to another image in their pods"
_LISTED = "Degraded says what keeps a StatefulSet from making pods"
_NOT_WRITTEN = ("events are not written", "grant create and patch")
OPERATOR: tuple[Use, ...] = (
    *watching("memcacheds", "memcacheds.cache.example.com", "it sees what users ask for"),
    *watching("deployments", "deployments.apps", "it sees what others do to its Deployments"),
    *watching("pods", "pods", "status.nodes"),
    use("get memcacheds", "a Deployment that somebody deleted is made again", _has_deployment, _bare),
    use("patch memcacheds", "a deleted Memcached goes", _is_gone, _delete_with_the_finalizer, _DEGRADED),
    use("patch memcacheds/status", "the status tells what there is", _has_status, _apply, ": attempt"),
    Use(
        *("update", "memcacheds/finalizers", "a Deployment belongs to its Memcached", _has_deployment),
        (_DEGRADED, "an ownerReference refers to a resource you can't set finalizers on"),
        _apply,
    ),
    use(
        *("get deployments", "a client that keeps changing a field is named", _names_the_rival),
        lambda trial: trial.scale_by_hand(times=5),
        "cannot read who writes",
    ),
    use("create deployments", "Deployments are made", _has_deployment, _apply, _DEGRADED),
    use("patch deployments", "Deployments are scaled and put right", _is_scaled, _scale, _DEGRADED),
    Use(
        *("delete", "deployments", "a Deployment whose owner was removed gets it back", _is_owned),
        (_DEGRADED, "cannot set an ownerRef on a resource you can't delete"),
        _disown,
    ),
    use("create events", "kubectl describe tells what was done", _has_events, _apply, *_NOT_WRITTEN),
    use("list events", _LISTED, _reports_what_keeps_pods, _have_no_room, "cannot list events", "grant list on events"),
    use("get pods", *_RESIZED, "is replaced to get its memory of 128 MiB: "),
    use("patch pods/resize", *_RESIZED, "is replaced to get its memory of 128 MiB: "),
    use("patch pods", _IN_PLACE, _is_given_the_image, _another_image_in_place, "as they cannot be changed in place: "),
    use("create pods/eviction", "servers come to another template", _is_replaced, _another_image, _DEGRADED),
    use("get leases", _ALONE, _leads, nothing, _NO_PART, _FOR_LEASES, flags=ELECT),
    use("create leases", _ALONE, _leads, nothing, _NO_PART, _FOR_LEASES, flags=ELECT),
    use("patch leases", "the leader goes on leading", _renews, nothing, "renewing Lease", _FOR_LEASES, flags=ELECT),
    use(
        *("list leases", f"{_LETS_GO}, on a server without streaming lists", _leads, _let_go),
        "cannot watch leases.coordination.k8s.io",
        **_STANDS,
        streaming=False,
    ),
    use("watch leases", _LETS_GO, _leads, _let_go, "cannot watch leases.coordination.k8s.io", **_STANDS),
    # The last of those without flags: it ends its operator.
    use("patch events", "kubectl describe tells how often it was done", _counts, _repeat_and_stop, *_NOT_WRITTEN),
)
"""Of manifests/rbac."""
