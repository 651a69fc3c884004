from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

import pytest

from operator_runtime.cache.store import ObjectKey
from operator_runtime.client.access.credentials import ClusterAccess
from operator_runtime.election.elections import ElectionError, election_families, election_of, lock_of
from operator_runtime.election.leader_for_life import LifeElection
from operator_runtime.election.lease_election import LeaseElection
from tests.unit.operator_runtime.client.client_support import FakeCredentials
from tests.unit.operator_runtime.operator_support import settings
from tests.unit.operator_runtime.series import series

IN_A_POD = ClusterAccess("https://here", "ops", "a test", FakeCredentials(), in_pod=True)
ON_A_LAPTOP = replace(IN_A_POD, in_pod=False)


def elected(
    access: ClusterAccess, mode: str = "lease", namespace: str | None = None, environ: Mapping[str, str] = {}
) -> LeaseElection | LifeElection | None:
    values = {"leader_elect_mode": mode, "leader_elect_id": "lock", "leader_elect_namespace": namespace}
    return election_of(settings(leader_elect=True, **values), access, environ, user_agent="agent/1", field_manager="us")


def test_the_lock_is_the_settings_or_bears_the_operators_name() -> None:
    named, unnamed = settings(leader_elect_id="a9b2e162.jgato.io"), settings()
    keys = [lock_of(each, own="ops", in_pod=True) for each in (named, unnamed)]
    assert keys == [ObjectKey("ops", "a9b2e162.jgato.io"), ObjectKey("ops", "shells-lock")]


async def test_a_lease_is_in_the_pods_own_namespace_or_the_one_that_is_given() -> None:
    own = elected(IN_A_POD, environ={"POD_NAME": "operator-7"})
    assert isinstance(own, LeaseElection)
    assert own.lock == ObjectKey("ops", "lock")
    assert own.identity.startswith("operator-7_")
    again, unnamed = elected(IN_A_POD, environ={"POD_NAME": "operator-7"}), elected(IN_A_POD)
    assert isinstance(again, LeaseElection)
    assert isinstance(unnamed, LeaseElection)
    assert again.identity != own.identity, "never the same twice"
    assert not unnamed.identity.startswith("_")
    assert vars(own)["_field_manager"] == "us"
    for access in (IN_A_POD, ON_A_LAPTOP):
        given = elected(access, namespace="other")
        assert given is not None
        assert given.lock == ObjectKey("other", "lock")


@pytest.mark.parametrize(
    ("access", "why"),
    [(ON_A_LAPTOP, "this is not a pod"), (replace(IN_A_POD, namespace=None), "the pod's service account names none")],
)
def test_a_lease_without_a_namespace_is_an_error_with_the_remedy(access: ClusterAccess, why: str) -> None:
    with pytest.raises(ElectionError) as caught:
        elected(access)
    assert str(caught.value) == f"leader election needs a namespace, and {why}: give --leader-elect-namespace"


def test_without_the_setting_there_is_none_and_for_life_outside_a_cluster_is_skipped_with_a_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    assert election_of(settings(), IN_A_POD, {}, user_agent="agent/1", field_manager="us") is None
    assert elected(ON_A_LAPTOP, "life", "ops") is None
    (line,) = caplog.messages
    assert line.startswith("leader election for life is skipped: this is not a pod")


async def test_for_life_is_in_the_pods_namespace_and_nowhere_else() -> None:
    found = elected(IN_A_POD, "life", environ={"POD_NAME": "operator-7"})
    assert isinstance(found, LifeElection)
    assert found.lock == ObjectKey("ops", "lock")
    with pytest.raises(ElectionError, match=r"--leader-elect-namespace other: .* leave the flag out"):
        elected(IN_A_POD, "life", "other")


async def test_metrics_say_who_leads_by_client_gos_names() -> None:
    standing = elected(IN_A_POD, "life")
    assert isinstance(standing, LifeElection)
    standing.leading = True
    assert series(election_families(standing)) == {
        "leader_election_master_status": {("lock",): 1},
        "leader_election_slowpath_total": {("lock",): 0},
    }
