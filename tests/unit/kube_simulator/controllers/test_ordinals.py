"""Which pods of a StatefulSet are made and ended next, and what its status says of them."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kube_simulator.controllers import ordinals
from kube_simulator.controllers.ordinals import End, Make
from kube_simulator.values import Json
from tests.unit.kube_simulator.controllers.world import stamp, template

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NEW, OLD = "web-new", "web-old"
ROLLING = {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}


def stateful_set(replicas: int = 3, *, ordered: bool = False, **spec: Any) -> Json:
    management = "OrderedReady" if ordered else "Parallel"
    given = {"template": template(), "updateStrategy": ROLLING, "podManagementPolicy": management, **spec}
    identity = {"apiVersion": "apps/v1", "kind": "StatefulSet"}
    metadata = {"name": "web", "namespace": "shop", "uid": "u", "generation": 1}
    return {**identity, "metadata": metadata, "spec": {"replicas": replicas, **given}}


def pod(text: str) -> Json:
    """Such as `2`, `2-` not ready, `2x` ended, `2~` on its way out, `2o` of the old revision, `2?` without its name."""
    name = f"web-{text[0]}"
    labels = {ordinals.REVISION_LABEL: OLD if "o" in text else NEW}
    labels |= {} if "?" in text else {ordinals.NAME_LABEL: name}
    metadata: Json = {"name": name, "labels": labels}
    metadata |= {"deletionTimestamp": stamp(NOW)} if "~" in text else {}
    ready = not set(text) & {"-", "x"}
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": stamp(NOW - timedelta(seconds=10))}
    phase = "Failed" if "x" in text else "Running" if ready else "Pending"
    return {"metadata": metadata, "status": {"phase": phase, "conditions": [condition]}}


def shown(step: ordinals.Step) -> str:
    if isinstance(step, Make):
        return f"+{step.ordinal}"
    return ("-" if isinstance(step, End) else "=") + str(step.pod["metadata"]["name"].removeprefix("web-"))


def next_steps(pods: str, **given: Any) -> str:
    found = ordinals.steps(stateful_set(**given), [pod(each) for each in pods.split()], NEW, NOW)
    return " ".join(map(shown, found))


@pytest.mark.parametrize(
    ("pods", "parallel", "ordered"),
    [
        ("", "+0 +1 +2", "+0"),
        ("0-", "+1 +2", ""),
        ("0", "+1 +2", "+1"),
        ("0 1 2", "", ""),
        ("1 2", "+0", "+0"),
        # Neither takes the place of one that is still there.
        ("0 1~ 2", "", ""),
        ("0x 1 2-", "-0", "-0"),
        ("0x~ 1 2", "", ""),
        ("0? 1 2", "=0", "=0"),
        ("0-? 1 2", "=0", ""),
        # One that is too many goes, from the top.
        ("0 1 2 3 4", "-4 -3", "-4"),
        ("0 1 2 3 4~", "-3", ""),
        ("0- 1 2 3", "-3", ""),
        ("0 1 2 3 4-", "-4 -3", "-4"),
        ("0 1 2 3- 4", "-4 -3", "-4"),
        ("0 1 2 3- 4-", "-4 -3", ""),
        # One of an older template goes, from the top, once all above it are there.
        ("0o 1o 2o", "-2", "-2"),
        ("0o 1o 2o-", "-2", ""),
        ("0o 1o 2-", "", ""),
        ("0o 1o 2o~", "", ""),
        ("0o 1o", "+2", "+2"),
        ("0o 1o 2", "-1", "-1"),
        ("0o- 1o 2", "-1", ""),
        ("0o 1 2", "-0", "-0"),
        ("0o 1o 2o 3o", "-3 -2", "-3"),
    ],
)
def test_what_is_done_next(pods: str, parallel: str, ordered: str) -> None:
    assert next_steps(pods) == parallel
    assert next_steps(pods, ordered=True) == ordered


@pytest.mark.parametrize(
    ("strategy", "steps"),
    [
        ({"type": "OnDelete"}, ""),
        ({"type": "RollingUpdate"}, "-2"),
        ({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}, "-2"),
        ({"type": "RollingUpdate", "rollingUpdate": {"partition": 3}}, ""),
    ],
)
def test_the_strategy_says_which_pods_are_updated(strategy: Json, steps: str) -> None:
    assert next_steps("0o 1o 2o", updateStrategy=strategy) == steps


def test_they_may_begin_at_another_number() -> None:
    assert next_steps("0 5", replicas=2, ordinals={"start": 4}) == "+4 -0"


def test_a_pod_is_available_when_it_has_been_ready_for_long_enough() -> None:
    assert next_steps("0", replicas=2, ordered=True, minReadySeconds=10) == "+1"
    assert next_steps("0", replicas=2, ordered=True, minReadySeconds=11) == ""
    status, next_s = ordinals.status_of(stateful_set(2, minReadySeconds=11), [pod("0"), pod("1-")], NEW, NOW)
    assert (status["readyReplicas"], status["availableReplicas"], next_s) == (1, 0, 1)


@pytest.mark.parametrize(
    ("pods", "before", "counts", "current"),
    [
        ("", "", (0, 0, 0, 0, 0), NEW),
        ("0 1-", "", (2, 1, 1, 2, 2), NEW),
        ("0 1~", "", (2, 2, 2, 1, 1), NEW),
        ("0o 1o 2", OLD, (3, 3, 3, 2, 1), OLD),
        ("0 1 2-", OLD, (3, 2, 2, 0, 3), OLD),
        ("0 1 2", OLD, (3, 3, 3, 3, 3), NEW),
        ("0 1 2 3o", OLD, (4, 4, 4, 1, 3), OLD),
    ],
)
def test_the_status_counts(pods: str, before: str, counts: tuple[int, ...], current: str) -> None:
    found = stateful_set() | ({"status": {"currentRevision": before}} if before else {})
    status, next_s = ordinals.status_of(found, [pod(each) for each in pods.split()], NEW, NOW)
    names = ("replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas")
    assert tuple(status.get(name, 0) for name in names) == counts
    assert (status["currentRevision"], status["updateRevision"]) == (current, NEW)
    assert next_s == math.inf


def test_without_a_strategy_the_current_revision_stays() -> None:
    found = stateful_set(1, updateStrategy={"type": "OnDelete"}) | {"status": {"currentRevision": OLD}}
    assert ordinals.status_of(found, [pod("0")], NEW, NOW)[0]["currentRevision"] == OLD


def test_the_same_template_has_the_same_revision() -> None:
    first, second = stateful_set(), stateful_set(1, serviceName="other")
    second["metadata"] = {**second["metadata"], "uid": "other"}
    assert ordinals.revision_of(first) == ordinals.revision_of(second)
    changed = stateful_set(template=template("web:<2>"))
    assert ordinals.revision_of(changed) != ordinals.revision_of(first)


@pytest.mark.parametrize(
    ("name", "ordinal"),
    [("web-0", 0), ("web-12", 12), ("web-a", None), ("web", None), ("webs-0", None), ("a-web-0", None)],
)
def test_a_pod_s_name_says_which_it_is(name: str, ordinal: int | None) -> None:
    assert ordinals.ordinal_of(stateful_set(), {"metadata": {"name": name}}) == ordinal


def test_a_pod_without_a_service_is_in_no_domain() -> None:
    spec = template(subdomain="theirs", hostname="theirs")
    made = ordinals.pod_at(stateful_set(template=spec), 1, NEW)["spec"]
    assert (made["hostname"], "subdomain" in made) == ("web-1", False)
    assert ordinals.pod_at(stateful_set(template=spec, serviceName="ours"), 1, NEW)["spec"]["subdomain"] == "ours"
