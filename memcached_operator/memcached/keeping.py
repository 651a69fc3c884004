"""The objects of one Memcached: each is kept as it is wanted, or removed, whatever becomes of the others."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from prometheus_client import Metric

from memcached_operator.api.names import Workload
from memcached_operator.memcached.beside import budget
from memcached_operator.memcached.beside.publication import is_untouched
from memcached_operator.memcached.beside.rules import (
    BUDGET_RULES,
    NETWORK_POLICY_RULES,
    PUBLICATION,
    PUBLICATION_RULES,
    SERVICE_RULES,
)
from memcached_operator.memcached.beside.service import with_names
from memcached_operator.memcached.beside.wanted import beside
from memcached_operator.memcached.caches import Caches
from memcached_operator.memcached.kinds import (
    BUDGETS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    MEMCACHEDS,
    NETWORK_POLICIES,
    SERVICES,
    STATEFUL_SETS,
)
from memcached_operator.memcached.labels import POD_SELECTOR
from memcached_operator.memcached.metrics import RepairCounts
from memcached_operator.memcached.observation import Problem, Reason
from memcached_operator.memcached.owned import OwnedRecord
from memcached_operator.memcached.records import MemcachedRecord
from memcached_operator.memcached.servers import Plan
from memcached_operator.memcached.spec import Spec
from memcached_operator.memcached.status import Status, refusal_reason
from memcached_operator.memcached.telling import in_words
from memcached_operator.memcached.workloads import desired
from memcached_operator.memcached.workloads.records import WorkloadRecord
from memcached_operator.memcached.workloads.rules import DEPLOYMENT_RULES, STATEFUL_SET_RULES
from operator_runtime import (
    Change,
    Forbidden,
    Invalid,
    Keeper,
    Kept,
    Kind,
    NotOwned,
    ObjectKey,
    Operator,
    Refused,
    ServerError,
)

logger = logging.getLogger(__name__)

R = TypeVar("R", bound=OwnedRecord)
Tell = Callable[[MemcachedRecord, Literal["Normal", "Warning"], str, str, str], None]


@dataclass(frozen=True, slots=True)
class ObjectsConfig:
    """What is to be known of the settings to make objects.

    Attributes:
        image: of a Memcached that names none.
        user_id: of the servers; None names none.
        operator_namespace: where the operator's own pods are, "" where it runs in no pod.
    """

    image: str
    user_id: int | None
    operator_namespace: str = ""


@dataclass(slots=True)
class Outcome:
    """What became of it.

    Attributes:
        workload: what is to run the servers, None while there is none.
        service: the name of the Service, "" without one.
        problems: what was in the way.
        waiting: what is waited for before all is there.
        strange: kinds of workloads of which somebody else's bears the name.
        failure: what is to be raised once all else is done and told, for all of it to be tried again.
    """

    workload: WorkloadRecord | None = None
    service: str = ""
    problems: list[Problem] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    strange: set[Workload] = field(default_factory=set)
    failure: ServerError | None = None


class Objects:
    """Keeps the objects of one Memcached at a time; see `keep`."""

    def __init__(self, operator: Operator, caches: Caches, config: ObjectsConfig, tell: Tell) -> None:
        """
        Args:
            operator: keeps and deletes.
            caches: of all kinds.
            config: the settings.
            tell: records an event.
        """
        self._caches = caches
        self._config = config
        self._tell_event = tell
        self._counts = RepairCounts()

        def owned(kind: Kind[Any], rules: Any, **cache: Any) -> Keeper[MemcachedRecord, Any, Any]:
            return operator.owned(MEMCACHEDS, kind, rules=rules, tell=self._teller(kind), **cache)

        self._workloads: dict[Workload, Keeper[MemcachedRecord, Any, WorkloadRecord]] = {
            "Deployment": owned(DEPLOYMENTS, DEPLOYMENT_RULES),
            "StatefulSet": owned(STATEFUL_SETS, STATEFUL_SET_RULES, optional=True),
        }
        self._beside: dict[str, Keeper[MemcachedRecord, Any, OwnedRecord]] = {
            "Service": owned(SERVICES, SERVICE_RULES, optional=True),
            "PodDisruptionBudget": owned(BUDGETS, BUDGET_RULES, optional=True),
            # Others have many of these, which are none of our affair.
            "NetworkPolicy": owned(NETWORK_POLICIES, NETWORK_POLICY_RULES, labels=POD_SELECTOR, optional=True),
            "ConfigMap": owned(CONFIG_MAPS, PUBLICATION_RULES, labels=POD_SELECTOR, optional=True),
        }

    async def keep(self, memcached: MemcachedRecord, spec: Spec, plan: Plan, last: Status) -> Outcome:
        """Make, put right and remove what the plan and the specification say.

        Raises:
            KubeError: the API server could not be reached, or the caches are behind it; to be tried again.
        """
        outcome = Outcome()
        await self._keep_workloads(memcached, spec, plan, last, outcome)
        # A list that servers leave is published before the time begins after which they are gone: the operator may end
        # in between. Any other is as the status has it, which coalesces what comes together.
        leave = not set(plan.servers.draining) <= set(last.draining or ())
        published = plan.servers.listed if leave else last.serverList or ()
        await self._keep_beside(memcached, spec, plan, last, published, outcome)
        return outcome

    async def _keep_workloads(
        self, memcached: MemcachedRecord, spec: Spec, plan: Plan, last: Status, outcome: Outcome
    ) -> None:
        key, image = memcached.key, spec.image or self._config.image
        newer = last.observedGeneration != memcached.generation
        for kind, replicas in plan.replicas.items():
            wanted = desired.workload(
                kind, key.name, key.namespace, memcached.uid, replicas, image, self._config.user_id, spec.pod
            )
            seen = last.observedGeneration is not None and last.workload in (None, kind)
            keeper, asked = self._workloads[kind], newer or plan.drained
            kept = await self._try(
                outcome, kind, keeper.keep(memcached, wanted, seen=seen, asked=asked), blocking=kind == plan.target
            )
            if kind == plan.target:
                outcome.workload = kept.obj if kept is not None else self._held(memcached, kind, outcome)
        if plan.removed is not None:
            removal = self._workloads[plan.removed].remove(memcached, key, propagation="Foreground")
            await self._try(outcome, plan.removed, removal)

    def _held(self, memcached: MemcachedRecord, kind: Workload, outcome: Outcome) -> WorkloadRecord | None:
        """The workload as it stays, where nothing could be done about it."""
        return None if kind in outcome.strange else self._caches.workloads_of(memcached).get(kind)

    async def _keep_beside(
        self,
        memcached: MemcachedRecord,
        spec: Spec,
        plan: Plan,
        last: Status,
        published: Sequence[str],
        outcome: Outcome,
    ) -> None:
        namespace, uid = memcached.namespace, memcached.uid
        # That its status is of this generation says that these were made before.
        seen = last.observedGeneration == memcached.generation and last.condition("Ready") is not None
        named = spec.workload == "StatefulSet" or plan.servers.has_names
        if spec.workload != "StatefulSet" and named and last.service is not None:
            spec = with_names(spec)  # the names that clients know stay as long as their servers do
        operators = self._config.operator_namespace
        all_wanted = beside(memcached.name, namespace, uid, spec, published, operators, named=named)
        for kind, name, wanted in all_wanted:
            keeper, manifest = self._beside[kind], wanted
            if kind == "PodDisruptionBudget" and wanted is not None and (other := self._others_budget(memcached, spec)):
                manifest = None
                outcome.problems.append(Problem(Reason.OTHER_BUDGET, budget.in_the_way(other, name), blocking=False))
            if kind == "ConfigMap" and wanted is not None and last.serverList is None:
                continue  # nothing is published yet
            if manifest is None:
                await self._try(outcome, kind, keeper.remove(memcached, ObjectKey(namespace, name)))
                continue
            made_before, asked = seen, not seen
            if kind == "Service":  # it follows the servers' names
                asked = asked or any(each.workload == "StatefulSet" for each in last.draining or ())
            if kind == "ConfigMap":  # it follows the servers
                made_before, asked = False, asked or self._is_untouched(ObjectKey(namespace, name))
            kept = await self._try(outcome, kind, keeper.keep(memcached, manifest, seen=made_before, asked=asked))
            if kind == "Service" and kept is not None and kept.obj is not None:
                outcome.service = name

    def _is_untouched(self, key: ObjectKey) -> bool:
        """Whether a list that is no longer right is so because the servers have changed since."""
        live = self._caches.config_maps.get(key)
        return live is not None and bool(live.form) and is_untouched(PUBLICATION.held(live))

    def _others_budget(self, memcached: MemcachedRecord, spec: Spec) -> str:
        others = self._caches.others_budgets(memcached.namespace)
        return budget.others_budget(others, memcached.name, spec)

    async def _try(
        self, outcome: Outcome, kind: str, doing: Awaitable[Kept[R]], *, blocking: bool = False
    ) -> Kept[R] | None:
        """What became of one object; None where something was in the way, which `outcome` then has."""
        try:
            kept = await doing
        except NotOwned as error:
            if kind in self._workloads:
                outcome.strange.add(kind)
            problem = Problem(Reason.NOT_CONTROLLED, str(error), blocking)
        except Invalid as error:
            message = f"The API server refused the {kind}: {error.message or error}"
            problem = Problem(Reason.INVALID_SPEC, message, blocking)
        except Forbidden as error:
            problem = Problem(refusal_reason(error.message), error.message or str(error), blocking)
        except Refused as error:
            problem = Problem(Reason.FORBIDDEN, str(error), blocking)
        except ServerError as error:
            if kind in self._workloads:
                raise
            # Such as an admission webhook for Services that does not answer: the servers' list is not to wait for it.
            outcome.waiting.append(f"The API server failed to write the {kind}: {error.message or error}")
            outcome.failure = error
            return None
        else:
            if kept.waiting:
                outcome.waiting.append(kept.waiting)
            return kept
        outcome.problems.append(problem)
        return None

    def families(self) -> Iterator[Metric]:
        """What was put right."""
        return self._counts.families()

    def _teller(self, kind: Kind[Any]) -> Callable[[MemcachedRecord, Change[Any]], None]:
        return lambda memcached, change: self._told(memcached, kind.resource.kind, change)

    def _told(self, memcached: MemcachedRecord, kind: str, change: Change[Any]) -> None:
        """Say in the log and in an event what was done, and count what somebody else had changed."""
        paths = [each.path for each in change.fields]
        text = in_words(memcached, kind, change)
        if not change.asked and not change.deleted:
            for path in paths:
                self._counts.count(kind, path)
        level = logging.DEBUG if change.routine else logging.INFO
        logger.log(level, "%s", text.line, extra={"fields": text.fields})
        if text.note and not change.routine:
            self._tell_event(memcached, "Normal", text.reason, text.action, text.note)
