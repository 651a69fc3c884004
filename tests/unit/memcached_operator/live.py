"""A Memcached that asks for everything, and each object of it, as desired and as a real API server returned it.

The files were read from a kube-apiserver v1.36.3 whose controllers had acted on them, after an operator had applied
what `full_spec.json` asks for: all defaults and managedFields are there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from memcached_operator.api.reading import read_spec
from memcached_operator.api.v1alpha1 import Spec
from memcached_operator.core.objects.auxiliary_objects import auxiliary_objects
from memcached_operator.core.objects.object_types import Manifest
from memcached_operator.core.objects.owned_record import OwnedRecord
from memcached_operator.core.objects.service import SERVICE
from memcached_operator.core.objects.workload import STATEFUL_SET, desired_workload
from memcached_operator.core.observed.caches import BUDGETS, CONFIG_MAPS, NETWORK_POLICIES, SERVICES, STATEFUL_SETS
from memcached_operator.core.observed.workloads import stateful_set_record
from memcached_operator.features.disruption_budget.budget import BUDGET, budget_record
from memcached_operator.features.network_policy.network_policy import NETWORK_POLICY
from memcached_operator.features.published_list.server_list_configmap import PUBLICATION
from operator_runtime import Difference, Kind, Rules
from operator_runtime.owned.patching import patch_of
from tests.unit.memcached_operator.support import HERE, OWNER

Json = dict[str, Any]
Edit = Callable[[Json], object]
IMAGE = "docker.io/library/memcached:1.6.45-alpine"


class Case(NamedTuple):
    """A kind of object: where a live one is, what its record is made by, and how it is kept."""

    file: str
    record: Callable[[bytes], OwnedRecord]
    rules: Rules[Any, Any]
    kind: Kind[Any]


CASES = {
    "StatefulSet": Case(
        "desired_objects/live_stateful_set.json", stateful_set_record, STATEFUL_SET.rules, STATEFUL_SETS
    ),
    "Service": Case("desired_objects/live_service.json", SERVICE.record, SERVICE.rules, SERVICES),
    "PodDisruptionBudget": Case("desired_objects/live_budget.json", budget_record, BUDGET.rules, BUDGETS),
    "NetworkPolicy": Case(
        "desired_objects/live_network_policy.json", NETWORK_POLICY.record, NETWORK_POLICY.rules, NETWORK_POLICIES
    ),
    "ConfigMap": Case("desired_objects/live_config_map.json", PUBLICATION.record, PUBLICATION.rules, CONFIG_MAPS),
}


def full_spec() -> Json:
    """What the Memcached asks for, to be changed at will."""
    spec: Json = json.loads((HERE / "full_spec.json").read_text())
    return spec


def spec_of(body: Json | None = None) -> Spec:
    return read_spec(json.dumps(full_spec() if body is None else body).encode())


def desired(kind: str, spec: Spec | None = None, servers: Sequence[str] = (), operator_namespace: str = "") -> Manifest:
    """The object of that kind; it is desired."""
    spec = spec or spec_of()
    if kind in ("Deployment", "StatefulSet"):
        return desired_workload(spec.workload, OWNER, spec.size, spec.image or IMAGE, spec=spec)
    return next(each for each in auxiliary_objects(OWNER, spec, servers, operator_namespace) if each.kind == kind)


def live(kind: str, edit: Edit = lambda _: None, file: str = "") -> OwnedRecord:
    """The record of the live object of that kind, edited."""
    body = json.loads((HERE / (file or CASES[kind].file)).read_text())
    edit(body)
    return CASES[kind].record(json.dumps(body).encode())


def found(kind: str, edit: Edit = lambda _: None, spec: Spec | None = None, file: str = "") -> list[Difference]:
    """How the live object, edited, differs from the desired one."""
    return list(CASES[kind].rules.differences(desired(kind, spec), live(kind, edit, file)))


def patched(kind: str, edit: Edit, spec: Spec | None = None) -> Json:
    """The patch that puts the edited object right."""
    sent: Json = json.loads(msgspec.json.encode(patch_of(found(kind, edit, spec), CASES[kind].kind.resource)))
    return sent
