"""Script of the demo: what a team does with its caches, and what others do to them, step by step."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import orjson

from memcached_operator.api.crd import memcached_crd
from memcached_operator.api.names import API_VERSION, KIND
from memcached_operator.core.objects.service import SERVICES
from memcached_operator.core.observed.caches import MEMCACHEDS
from memcached_operator.demo.caching import StepFailedError, look_up, set_all, spread, through_each_pod
from memcached_operator.demo.cluster_state import NAMESPACE, ClusterState, Json, Observer, labels_of_body
from memcached_operator.demo.clusters import DemoCluster
from memcached_operator.features.disruption_budget.budget import BUDGETS
from operator_runtime.client.api_client import APPLY_PATCH, ApiClient
from operator_runtime.client.errors import NotFound, TooManyRequests
from operator_runtime.client.resources import CRDS, DEPLOYMENTS, PODS

# The name of the sample in the manifests, one that a Deployment has already, and one whose servers have names.
EXAMPLE, CONFLICTING, NAMED = "example-memcached", "conflicting", "sessions"
_NAMED_SIZE, _KEYS = 3, 60
_FIELD_MANAGER = "demo"
# Far above what a step takes, also on a machine that does other things besides.
DEADLINE_S = 60.0
# Kubernetes answers 429 while it makes room for a new kind.
_SERVED_WITHIN_S = 30.0
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class DemoStep:
    """Step of the demo: an action and its expected result."""

    deed: str
    outcome: str
    run: Callable[[StepContext], Awaitable[str]]
    """Does it and waits; a few words about what was seen, or empty. Raises StepFailedError."""


@dataclass(frozen=True, slots=True)
class StepContext:
    """Context of the steps: what they act with and read."""

    client: ApiClient
    observer: Observer
    cluster: DemoCluster
    deadline_s: float = DEADLINE_S

    @property
    def state(self) -> ClusterState:
        """State at the last observation."""
        return self.observer.state

    async def until(self, holds: Callable[[ClusterState], bool], otherwise: Callable[[ClusterState], str]) -> None:
        """Wait for what must come true.

        Raises:
            StepFailedError: it did not in time; `otherwise` describes what is there instead.
        """
        if not await self.observer.until(holds, self.deadline_s):
            raise StepFailedError(f"{otherwise(self.state)} after {self.deadline_s:.0f} s")

    async def until_it_runs(self, memcached: str, size: int) -> str:
        """Wait until that many servers run, and try each one where it is real."""

        def otherwise(state: ClusterState) -> str:
            status = state.status(memcached)
            return f"{memcached} has {status.get('readyReplicas', 0)} of {size} servers ready: {status}"

        await self.until(lambda state: state.runs(memcached, size), otherwise)
        if not self.cluster.real_pods:
            return ""
        count = await through_each_pod(self.state, memcached)
        return f"a key was stored and read in each of the {count} pods"


async def install_crd(client: ApiClient) -> None:
    """Install the CRD and wait until its kind is served."""
    crd = memcached_crd()
    try:
        async with asyncio.timeout(_SERVED_WITHIN_S):
            name, manager = MEMCACHEDS.resource.qualified_name, _FIELD_MANAGER
            await client.patch(CRDS, None, name, crd, field_manager=manager, content_type=APPLY_PATCH, force=True)
            while True:
                if await _is_served(client):
                    return
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        raise StepFailedError(f"the API server does not serve {MEMCACHEDS.resource.qualified_name}") from None


async def _is_served(client: ApiClient) -> bool:
    try:
        await client.request("GET", MEMCACHEDS.resource.path(NAMESPACE))
    except (NotFound, TooManyRequests):
        return False
    return True


async def _create(context: StepContext) -> str:
    await context.client.create(MEMCACHEDS.resource, NAMESPACE, _memcached(EXAMPLE, 3), field_manager=_FIELD_MANAGER)
    seen = await context.until_it_runs(EXAMPLE, 3)
    for kind in (SERVICES.kind, BUDGETS.kind):
        await context.client.request("GET", kind.resource.path(NAMESPACE, EXAMPLE))
    return seen


async def _scale_up(context: StepContext) -> str:
    body = {"spec": {"size": 4}}
    await context.client.patch(MEMCACHEDS.resource, NAMESPACE, EXAMPLE, body, field_manager=_FIELD_MANAGER)
    return await context.until_it_runs(EXAMPLE, 4)


async def _delete_deployment(context: StepContext) -> str:
    uid = context.state.deployments[EXAMPLE]["metadata"]["uid"]
    await context.client.request("DELETE", DEPLOYMENTS.path(NAMESPACE, EXAMPLE))
    await context.until(
        lambda state: state.deployments.get(EXAMPLE, {"metadata": {"uid": uid}})["metadata"]["uid"] != uid,
        lambda _: f"Deployment {EXAMPLE} was not recreated",
    )
    return await context.until_it_runs(EXAMPLE, 4)


async def _edit_replicas(context: StepContext) -> str:
    answer = await context.client.patch(
        DEPLOYMENTS, NAMESPACE, EXAMPLE, {"spec": {"replicas": 1}}, field_manager=_FIELD_MANAGER
    )
    edited = orjson.loads(answer)["metadata"]["generation"]
    await context.until(
        lambda state: EXAMPLE in state.deployments and state.deployments[EXAMPLE]["metadata"]["generation"] > edited,
        lambda _: f"the replicas of Deployment {EXAMPLE} stay at 1",
    )
    return await context.until_it_runs(EXAMPLE, 4)


async def _foreign_deployment(context: StepContext) -> str:
    await context.client.create(DEPLOYMENTS, NAMESPACE, _foreign_manifest(), field_manager="another-client")
    await context.client.create(
        MEMCACHEDS.resource, NAMESPACE, _memcached(CONFLICTING, 2), field_manager=_FIELD_MANAGER
    )
    await context.until(
        lambda state: state.condition(CONFLICTING, "Degraded").get("reason") == "NotControlled",
        lambda state: f"the status of {CONFLICTING} does not report it: {state.status(CONFLICTING)}",
    )
    if not _is_untouched(context.state):
        raise StepFailedError(
            f"the other client's Deployment was changed: {context.state.deployments.get(CONFLICTING)}"
        )
    return str(context.state.condition(CONFLICTING, "Degraded")["message"])


async def _delete_all(context: StepContext) -> str:
    for name in (EXAMPLE, CONFLICTING):
        await context.client.request("DELETE", MEMCACHEDS.resource.path(NAMESPACE, name))
    await context.until(
        lambda state: not state.memcacheds and EXAMPLE not in state.deployments and not _owned_pods(state),
        lambda state: f"these still exist: {sorted([*state.memcacheds, *state.deployments, *_owned_pods(state)])}",
    )
    if not _is_untouched(context.state):
        raise StepFailedError("the other client's Deployment was deleted too")
    await context.client.request("DELETE", DEPLOYMENTS.path(NAMESPACE, CONFLICTING))
    await context.until(lambda state: not state.pods, lambda state: f"these pods still exist: {sorted(state.pods)}")
    return ""


async def _create_named(context: StepContext) -> str:
    memcached = _memcached(NAMED, _NAMED_SIZE, workload="StatefulSet")
    await context.client.create(MEMCACHEDS.resource, NAMESPACE, memcached, field_manager=_FIELD_MANAGER)
    seen = await context.until_it_runs(NAMED, _NAMED_SIZE)
    return "; ".join(filter(None, (", ".join(context.state.servers(NAMED)), seen)))


async def _delete_named(context: StepContext) -> str:
    """Delete a server that has keys; where it is real, its keys are lost, and those of no other."""
    await context.until_it_runs(NAMED, _NAMED_SIZE)
    servers = context.state.servers(NAMED)
    keys_of = spread([f"session-{number}" for number in range(_KEYS)], servers)
    lost = servers[1]
    name = lost.partition(".")[0]
    if context.cluster.real_pods:
        await set_all(context.state, keys_of)
    uid = context.state.pods[name]["metadata"]["uid"]
    await context.client.request("DELETE", PODS.path(NAMESPACE, name))
    await context.until(
        lambda state: state.pods.get(name, {"metadata": {"uid": uid}})["metadata"]["uid"] != uid,
        lambda _: f"{name} did not come back",
    )
    await context.until_it_runs(NAMED, _NAMED_SIZE)
    if (now := context.state.servers(NAMED)) != servers:
        raise StepFailedError(f"the list was {servers}, and is {now}")
    if not context.cluster.real_pods:
        return ""
    hits = await look_up(context.state, keys_of)
    misses = {key for keys in keys_of.values() for key in keys} - hits
    if misses != set(keys_of[lost]):
        raise StepFailedError(f"of {keys_of} these were not found: {sorted(misses)}")
    return f"of {_KEYS} keys {len(hits)} are hits; {len(misses)} are misses, all of them {name}'s"


STEPS = (
    DemoStep(
        f"Create the Memcached {EXAMPLE} with spec.size 3",
        "a Deployment, a Service and a PodDisruptionBudget; 3 servers ready, listed in the status",
        _create,
    ),
    DemoStep("Change spec.size to 4", "a fourth server, listed in the status", _scale_up),
    DemoStep("Delete its Deployment", "it is recreated, with 4 new servers", _delete_deployment),
    DemoStep("Edit the Deployment's replicas to 1 by hand", "4 again: the Memcached decides", _edit_replicas),
    DemoStep(
        f"Create the Memcached {CONFLICTING}, while a Deployment has that name",
        "that Deployment is not changed, and the status says so",
        _foreign_deployment,
    ),
    DemoStep("Delete both Memcacheds", "everything is gone except that Deployment", _delete_all),
    DemoStep(
        f"Create the Memcached {NAMED} with spec.workload StatefulSet",
        "3 servers with stable names, in status.serverList",
        _create_named,
    ),
    DemoStep(
        f"Delete a server of {NAMED}, whose clients spread keys over the list",
        "it comes back under its name, and the list stays: no other server's keys are lost",
        _delete_named,
    ),
)

# After the others where the demo stays, so that there is something to scale, edit and delete.
TO_PLAY_WITH = DemoStep(
    f"Create {EXAMPLE} again, to try things out",
    f"3 servers ready; try: kubectl scale memcached/{EXAMPLE} --replicas=5",
    _create,
)


def _memcached(name: str, size: int, **spec: str) -> Json:
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": {"size": size, **spec}}


def _foreign_manifest() -> Json:
    labels = {"app": "another-owners"}
    return {
        "apiVersion": DEPLOYMENTS.api_version,
        "kind": DEPLOYMENTS.kind,
        "metadata": {"name": CONFLICTING},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "registry.example.com/web:1"}]},
            },
        },
    }


def _is_untouched(state: ClusterState) -> bool:
    """Report whether the foreign Deployment is as created: it has no owner, and the operator did not write it."""
    found = state.deployments.get(CONFLICTING, {"metadata": {}})
    managers = {each["manager"] for each in found["metadata"].get("managedFields", ())}
    spec = found.get("spec", {})
    return (
        "another-client" in managers
        and "memcached-operator" not in managers
        and "ownerReferences" not in found["metadata"]
        and spec.get("replicas") == 1
    )


def _owned_pods(state: ClusterState) -> list[str]:
    return [name for name, pod in state.pods.items() if "memcached_cr" in labels_of_body(pod)]
