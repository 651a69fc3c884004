"""A user id that is none any more is taken out of Deployments that were made with one, as a real API server sees it."""

from __future__ import annotations

from typing import Any

from operator_runtime.testing.waiting import until
from tests.integration.conftest import Operators, memcached
from tests.integration.oracle import catch_up, deployment_writes, wait_condition
from tests.integration.requests import taken
from tests.kubectl_in_namespace import Kubectl

NAMES_NONE = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def security(kubectl: Kubectl) -> Any:
    return kubectl.get("deployment", "shop")["spec"]["template"]["spec"]["securityContext"]


def test_deployments_lose_the_id_by_one_write_and_do_not_get_it_back_from_others(
    kubectl: Kubectl, operators: Operators
) -> None:
    kubectl.apply(memcached("shop", 0), create=True)
    first = operators.start("-n", kubectl.namespace).ready()
    wait_condition(kubectl, "shop", "Progressing", "Complete")
    assert security(kubectl) == {**NAMES_NONE, "runAsUser": 11211, "runAsGroup": 11211}
    first.kill()

    mark = kubectl.cluster.audit_mark()
    operators.start("-n", kubectl.namespace, MEMCACHED_OPERATOR_MEMCACHED_USER_ID="none").ready()
    until("the ids are still there", lambda: security(kubectl) == NAMES_NONE)
    catch_up(kubectl)
    assert taken(deployment_writes(kubectl, "shop", mark)) == {"deployments 200"}

    theirs = '{"spec":{"template":{"spec":{"securityContext":{"runAsUser":7}}}}}'
    kubectl("patch", "deployment/shop", "--type=merge", "-p", theirs)
    until("their id is still there", lambda: security(kubectl) == NAMES_NONE)
    catch_up(kubectl)
    assert taken(deployment_writes(kubectl, "shop", mark)) == {"deployments 200"}
