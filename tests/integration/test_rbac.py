"""The permissions of manifests/ are enough, and each is needed: what is missed without it, and how that is said."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from operator_runtime.testing.waiting import until
from tests.cluster import Cluster, make_namespace
from tests.integration import permissions
from tests.integration.accounts import ACCOUNT, LOCK, account_with_role, operator_rules
from tests.integration.conftest import Operators
from tests.integration.permissions import Trial, Use
from tests.integration.permissions_optional import OPTIONAL
from tests.integration.requests import requests_of
from tests.kubectl_in_namespace import Kubectl

USES = (*OPTIONAL, *permissions.OPERATOR)


@pytest.fixture
def ends() -> Iterator[ExitStack]:
    with ExitStack() as ends:
        yield ends


def begin(cluster: Cluster, ends: ExitStack, use: Use, *, lacking: bool) -> Trial:
    """An operator in a namespace of its own, with all its permissions but perhaps this one."""
    name = f"permissions-{uuid.uuid4().hex[:10]}"
    make_namespace(cluster, name)
    ends.callback(cluster.kubectl, "delete", "namespace", name, "--wait=false")
    kubectl = Kubectl(cluster, name)
    account = account_with_role(kubectl, operator_rules(without=[use.permission] if lacking else []))
    use.before(kubectl)
    named = {"OPERATOR_NAME": name, "MEMCACHED_OPERATOR_LEADER_ELECT_ID": LOCK}
    operator = Operators(cluster, ends).start("--log-level=debug", *use.flags, account_dir=account, **named)
    return Trial(kubectl, operator, "cache")


def cluster_of(use: Use, request: pytest.FixtureRequest) -> Cluster:
    found: Cluster = request.getfixturevalue("installed" if use.streaming else "older")
    return found


@pytest.mark.cluster("kubernetes")  # which permission a request takes is the real one's to say
@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("use", USES, ids=[f"{use.verb} {use.resource}: {use.feature}" for use in USES])
def test_without_a_permission_something_is_missed_and_the_log_says_which_permission_it_is(
    use: Use, request: pytest.FixtureRequest, ends: ExitStack
) -> None:
    trial = begin(cluster_of(use, request), ends, use, lacking=True)
    use.act(trial)
    trial.operator.wait_for_log(*use.words)
    assert not use.works(trial)


# Uses that one operator can show one after the other.
ALIKE: dict[str, list[Use]] = {}
for _use in USES:
    _server = "streaming lists" if _use.streaming else "lists"
    _kind = "a standby" if _use.before is not permissions.nothing else "a leader" if _use.flags else "alone"
    _resize = ", resize" if _use.feature == permissions.RESIZED else ""
    ALIKE.setdefault(f"{_kind}, {_server}{_resize}", []).append(_use)


@pytest.mark.cluster("kubernetes")  # quotas are the real one's
@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    "uses",
    [
        pytest.param(
            uses,
            id=name,
            marks=[
                # The gate starts no second server for the permission of lists.
                *([pytest.mark.core] if uses[0].streaming else []),
                *([pytest.mark.since("1.33", "in-place resize of pods")] if name.endswith("resize") else []),
            ],
        )
        for name, uses in ALIKE.items()
    ],
)
def test_with_all_permissions_it_works_and_nothing_is_refused(
    uses: list[Use], request: pytest.FixtureRequest, ends: ExitStack
) -> None:
    cluster = cluster_of(uses[0], request)
    mark = cluster.audit_mark()
    trial = begin(cluster, ends, uses[0], lacking=False)
    for number, use in enumerate(uses):
        each = replace(trial, name=f"cache-{number}")
        use.act(each)
        until(f"it does not work: {use.feature}", lambda use=use, each=each: use.works(each))  # type: ignore[misc]
    requests_made = requests_of(cluster, trial.kubectl.namespace, since=mark)
    assert [each for each in requests_made if each.code in (401, 403)] == []


def test_no_permission_is_granted_that_nothing_is_known_to_need() -> None:
    rules = operator_rules()
    granted = {(verb, resource) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}
    assert granted == {use.permission for use in USES}


@pytest.mark.core
@pytest.mark.cluster("kubernetes")  # the simulator has no impersonation
def test_leases_of_other_names_are_none_of_its_business(kubectl: Kubectl) -> None:
    account_with_role(kubectl, operator_rules())
    user = f"--as=system:serviceaccount:{kubectl.namespace}:{ACCOUNT}"
    for verb in ("get", "patch", "update", "delete"):
        for name in (LOCK, "of-another"):
            answer = kubectl.run("auth", "can-i", verb, f"leases.coordination.k8s.io/{name}", user, check=False)
            allowed = name == LOCK and verb in ("get", "patch")
            assert answer.stdout.strip() == ("yes" if allowed else "no"), (verb, name)
