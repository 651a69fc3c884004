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
from memcached_operator.core.objects.owned_kind import Known, OwnedKind, auxiliary_objects
from memcached_operator.core.objects.owned_object import Manifest, OwnedRecord
from memcached_operator.core.objects.service import SERVICES
from memcached_operator.core.objects.workload import STATEFUL_SET, desired_workload
from memcached_operator.core.observed.caches import STATEFUL_SETS
from memcached_operator.core.observed.workloads import stateful_set_record
from memcached_operator.features.discovery.server_list_configmap import CONFIG_MAPS
from memcached_operator.features.disruption_budget.budget import BUDGETS
from memcached_operator.features.network_policy.network_policy import NETWORK_POLICIES
from memcached_operator.owned_kinds import AUXILIARY
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


def _case(file: str, of: OwnedKind) -> Case:
    return Case(f"desired_objects/{file}.json", of.kind.decode, of.codec.rules, of.kind)


CASES = {
    "StatefulSet": Case(
        "desired_objects/live_stateful_set.json", stateful_set_record, STATEFUL_SET.rules, STATEFUL_SETS
    ),
    "Service": _case("live_service", SERVICES),
    "PodDisruptionBudget": _case("live_budget", BUDGETS),
    "NetworkPolicy": _case("live_network_policy", NETWORK_POLICIES),
    "ConfigMap": _case("live_config_map", CONFIG_MAPS),
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
    return next(
        each
        for each in auxiliary_objects(AUXILIARY, OWNER, spec, Known(servers, operator_namespace))
        if each.kind == kind
    )


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
