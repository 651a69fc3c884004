"""The reconcile of one Memcached: look, finalize, read the spec, plan, act, report.

Level-triggered: it looks at what is, never at the event before it. A reconcile that finds nothing to change sends
nothing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from prometheus_client import Metric

from memcached_operator.api.names import InvalidSpec
from memcached_operator.memcached import desired
from memcached_operator.memcached.ending import Ending
from memcached_operator.memcached.kinds import DEPLOYMENTS, MEMCACHEDS
from memcached_operator.memcached.metrics import RepairCounts, contested_family
from memcached_operator.memcached.objects import Deployment
from memcached_operator.memcached.records import DeploymentRecord, MemcachedRecord
from memcached_operator.memcached.reporter import Caches, Reporter
from memcached_operator.memcached.rules import REPLICAS, RULES
from memcached_operator.memcached.spec import read_spec
from memcached_operator.memcached.status import Problem, Reason, Status, decode_status, refusal_reason
from operator_runtime import Change, Forbidden, Invalid, Kept, NotOwned, ObjectKey, Operator, Refused, Result

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReconcilerConfig:
    """What the reconciler needs to know of the settings.

    Attributes:
        image: of a Memcached that names none.
        user_id: of the servers; None names none.
        status_delay_s: how long a status that is still changing may be held back.
        finalizer: put the finalizer on each Memcached.
    """

    image: str
    user_id: int | None
    status_delay_s: float
    finalizer: bool = False


class MemcachedReconciler:
    """Makes the cluster fit one Memcached at a time; see `reconcile`."""

    def __init__(
        self,
        operator: Operator,
        caches: Caches,
        config: ReconcilerConfig,
        *,
        clock: Callable[[], float] = time.monotonic,
        utc_now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """
        Args:
            operator: writes, keeps and tells.
            caches: of all three kinds.
            config: the settings.
            clock: monotonic seconds.
            utc_now: the time of a transition.
        """
        self._caches = caches
        self._config = config
        self._repairs = operator.repairs(MEMCACHEDS)
        self._deployments = operator.owned(MEMCACHEDS, DEPLOYMENTS, rules=RULES, tell=self._tell)
        self._reporter = Reporter(
            operator.client,
            caches,
            self._repairs,
            operator.events,
            status_delay_s=config.status_delay_s,
            clock=clock,
            utc_now=utc_now,
        )
        self._ending = Ending(
            operator.client, caches, self._repairs, self._reporter, wanted=config.finalizer, clock=clock
        )
        self._counts = RepairCounts()

    async def reconcile(self, key: ObjectKey) -> Result:
        """Bring the Deployment and the status of one Memcached to what they should be.

        Raises:
            KubeError: the API server could not be reached, or the caches are behind it; to be tried again.
        """
        memcached = self._caches.memcacheds.get(key)  # look
        if memcached is None:
            return Result()
        if memcached.deleting:  # finalize
            return await self._ending.finalize(memcached)
        memcached, aside = await self._ending.add_finalizer(memcached)
        last, deployment = decode_status(memcached.status), self._caches.deployments.get(key)
        try:
            spec = read_spec(memcached.spec)  # read the spec
        except InvalidSpec as error:
            unreadable = Problem(Reason.INVALID_SPEC, str(error))
            return await self._reporter.report(memcached, last, None, deployment=deployment, problem=unreadable)
        image = spec.image or self._config.image  # plan
        wanted = desired.deployment(key.name, key.namespace, memcached.uid, spec.size, image, self._config.user_id)
        kept, problem = await self._keep(memcached, wanted, last)  # act
        if self._repairs.is_spent(memcached):
            return Result()
        return await self._reporter.report(  # report
            memcached, last, spec.size, deployment=kept.obj, problem=problem or aside, waiting=kept.waiting
        )

    async def _keep(
        self, memcached: MemcachedRecord, wanted: Deployment, last: Status
    ) -> tuple[Kept[DeploymentRecord], Problem | None]:
        """The Deployment as it is after what could be done, and what was in the way."""
        seen = last.observedGeneration is not None
        asked = last.observedGeneration != memcached.generation
        try:
            return await self._deployments.keep(memcached, wanted, seen=seen, asked=asked), None
        except NotOwned as error:
            return Kept(None), Problem(Reason.NOT_CONTROLLED, str(error))
        except Invalid as error:
            message = f"The API server refused the Deployment: {error.message or error}"
            problem = Problem(Reason.INVALID_SPEC, message)
        except Forbidden as error:
            problem = Problem(refusal_reason(error.message), error.message or str(error))
        except Refused as error:
            problem = Problem(Reason.FORBIDDEN, str(error))
        return Kept(self._caches.deployments.get(memcached.key)), problem

    def families(self) -> Iterator[Metric]:
        """What was put right, and how many are contested."""
        yield from self._counts.families()
        yield contested_family(self._repairs.contested)

    def _tell(self, memcached: MemcachedRecord, change: Change[DeploymentRecord]) -> None:
        """Say in the log and in an event what was done, and count what somebody else had changed."""
        name, paths = change.obj.name, [each.path for each in change.fields]
        if change.before is None:
            why = "new Memcached" if change.asked else "there was none"
            replicas = read_spec(memcached.spec).size
            text = f"created Deployment with {replicas} replicas ({why})"
            note = f"Created Deployment {name} with {replicas} replicas" + ("" if change.asked else f": {why}")
            reason, fields = "Created", {"action": "create", "replicas": replicas, "why": why}
        elif paths == [REPLICAS]:
            (size,) = change.fields
            why = "spec.size changed" if change.asked else "somebody else had changed them"
            text = f"scaled Deployment from {size.live} to {size.wanted} replicas ({why})"
            note = f"Scaled Deployment {name} from {size.live} to {size.wanted} replicas: {why}"
            reason, fields = "Scaled", {"action": "scale", "from": size.live, "to": size.wanted, "why": why}
        else:
            what = "; ".join(map(str, change.fields))
            text, note = f"updated Deployment: {what}", f"Updated Deployment {name}: {what}"
            reason, fields = "Updated", {"action": "update", "changed": paths}
        if not change.asked:
            for path in paths:
                self._counts.count(path)
        logger.log(logging.DEBUG if change.routine else logging.INFO, "%s", text, extra={"fields": fields})
        if not change.routine:
            self._reporter.tell(memcached, "Normal", reason, reason.removesuffix("d"), note)
