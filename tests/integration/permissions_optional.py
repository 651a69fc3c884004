"""What the operator needs its permissions on kinds for that it can do without: verb by verb, kind by kind."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from operator_runtime.testing.waiting import until
from tests.integration.conftest import memcached
from tests.integration.permissions import Trial, Use, use, watching


@dataclass(frozen=True, slots=True)
class OptionalKind:
    """A kind of which a Memcached has one object, where it asks for it.

    Attributes:
        resource: plural.
        full_name: with its group, as kubectl takes it.
        kind: as messages name it.
        spec: a specification that asks for it, and for no other of these kinds.
        spec_without: the same, without it.
        edit: a change of a field of ours by hand.
        field: that field, as the log names it.
        suffix: of its name.
    """

    resource: str
    full_name: str
    kind: str
    spec: dict[str, Any]
    spec_without: dict[str, Any]
    edit: str
    field: str
    suffix: str = ""

    def name(self, trial: Trial) -> str:
        return f"{self.full_name}/{trial.name}{self.suffix}"


ALONE: dict[str, Any] = {
    "service": {"type": "Disabled"},
    "disruptionBudget": {"maxUnavailable": "100%"},
    "workload": "Deployment",
    "drainPeriodSeconds": 0,
}
"""A specification that asks for none of these kinds."""

KINDS = (
    OptionalKind(
        *("statefulsets", "statefulsets.apps", "StatefulSet", {"workload": "StatefulSet"}, {"workload": "Deployment"}),
        *('{"spec":{"replicas":3}}', "from 3"),
    ),
    OptionalKind(
        *("services", "services", "Service", {"service": {"type": "Headless"}}, {"service": {"type": "Disabled"}}),
        *('{"spec":{"publishNotReadyAddresses":true}}', "spec.publishNotReadyAddresses"),
    ),
    OptionalKind(
        *("poddisruptionbudgets", "poddisruptionbudgets.policy", "PodDisruptionBudget"),
        *({"disruptionBudget": {"maxUnavailable": 1}}, {"disruptionBudget": {"maxUnavailable": "100%"}}),
        *('{"spec":{"maxUnavailable":3}}', "spec.maxUnavailable"),
    ),
    OptionalKind(
        *("networkpolicies", "networkpolicies.networking.k8s.io", "NetworkPolicy"),
        *({"networkPolicy": {"ingress": [{"from": [{"podSelector": {}}]}]}}, {}),
        *('{"spec":{"ingress":[{}]}}', "spec.ingress"),
    ),
    OptionalKind(
        *("configmaps", "configmaps", "ConfigMap", {"discovery": {"configMap": {}}}, {}),
        *('{"data":{"servers":"edited"}}', "data[servers]"),
        suffix="-servers",
    ),
)


def specified(trial: Trial, fields: dict[str, Any]) -> None:
    """Have the Memcached ask for these kinds alone; of no server, so that it has all of them at once."""
    document = memcached(trial.name, 0, **(ALONE | fields))
    trial.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(document))


def _there(kind: OptionalKind, trial: Trial) -> bool:
    return trial.kubectl_gets(kind.name(trial)) is not None


def _made(kind: OptionalKind, trial: Trial) -> None:
    specified(trial, kind.spec)
    until(f"there is no {kind.kind}", lambda: _there(kind, trial))


def _edit(kind: OptionalKind, trial: Trial) -> None:
    """Edit a field by hand."""
    trial.kubectl("patch", kind.name(trial), "--type=merge", "-p", kind.edit)


def _made_and_edited(kind: OptionalKind, trial: Trial) -> None:
    _made(kind, trial)
    _edit(kind, trial)


def _edited(kind: OptionalKind, trial: Trial, times: int) -> None:
    """Edit a field by hand and wait until it is put right, again and again."""
    _made(kind, trial)
    for number in range(1, times + 1):
        _edit(kind, trial)
        until(
            f"{kind.field} of the {kind.kind} is not put right",
            lambda number=number: len(_put_right(kind, trial)) >= number,  # type: ignore[misc]
        )


def _put_right(kind: OptionalKind, trial: Trial) -> list[str]:
    return [
        line for verb in ("updated", "scaled") for line in trial.logged(f"{verb} {kind.kind}") if kind.field in line
    ]


def _named(kind: OptionalKind, trial: Trial) -> bool:
    return any("contested: " in line and '"kubectl-patch"' in line for line in trial.logged(f"of the {kind.kind}"))


def _undone(kind: OptionalKind, trial: Trial) -> None:
    _made(kind, trial)
    specified(trial, kind.spec_without)


def uses(kind: OptionalKind) -> Iterator[Use]:
    """What each permission on a kind is good for."""

    def there(trial: Trial) -> bool:
        return _there(kind, trial)

    def right(trial: Trial) -> bool:
        return _put_right(kind, trial) != []

    def apply_spec(trial: Trial) -> None:
        specified(trial, kind.spec)

    def its(verb: str, feature: str, works: Callable[[Trial], bool], act: Callable[[Trial], None], words: str) -> Use:
        return use(f"{verb} {kind.resource}", feature, works, act, words)

    forbidden, made = "degraded: Forbidden", f"a {kind.kind} is made"
    rival, gone = f"a client that keeps changing the {kind.kind} is named", f"a {kind.kind} not asked for goes"
    yield from watching(kind.resource, kind.full_name, made, works=there, act=apply_spec)
    yield its("create", made, there, apply_spec, forbidden)
    yield its("patch", f"a {kind.kind} is put right", right, partial(_made_and_edited, kind), forbidden)
    yield its("get", rival, partial(_named, kind), partial(_edited, kind, times=5), "cannot read who writes")
    yield its("delete", gone, lambda trial: not there(trial), partial(_undone, kind), forbidden)


OPTIONAL: tuple[Use, ...] = tuple(use for kind in KINDS for use in uses(kind))
"""Of manifests/rbac, beside `permissions.OPERATOR`."""
