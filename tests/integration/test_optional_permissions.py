"""Without the right to a kind that the operator can do without, all else is done, and it is said what is missing."""

from __future__ import annotations

from lab.audit import AuditEvent, Mark
from operator_runtime.testing.waiting import until
from tests.integration.accounts import account_with_role, grant, operator_rules
from tests.integration.conftest import Operators, memcached
from tests.integration.oracle import catch_up, condition, make_ready, pods_of, wait, wait_condition
from tests.integration.permissions_optional import ALONE, KINDS, OptionalKind
from tests.integration.requests import requests_of
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import OperatorProcess, logged_in_a_loop

ALL = {name: value for kind in KINDS for name, value in kind.spec.items() if name != "workload"}
AUXILIARY = [kind for kind in KINDS if kind.kind != "StatefulSet"]
STATEFUL_SETS = KINDS[0]


def start(kubectl: Kubectl, operators: Operators, *without: tuple[str, str]) -> OperatorProcess:
    """An operator of the test's own, without these permissions."""
    account = account_with_role(kubectl, operator_rules(without=without))
    return operators.start(account_dir=account, OPERATOR_NAME=kubectl.namespace).ready()


def serve(kubectl: Kubectl, name: str, **spec: object) -> None:
    """Create a Memcached of two servers, and have them serve."""
    kubectl.apply(memcached(name, 2, **spec), create=True)
    wait(kubectl, f"mcd/{name}", ".status.replicas", 2)
    make_ready(kubectl, pods_of(kubectl, name))
    wait(kubectl, f"mcd/{name}", ".status.readyReplicas", 2)


def there(kubectl: Kubectl, kind: OptionalKind, name: str) -> bool:
    return bool(kubectl("get", f"{kind.full_name}/{name}{kind.suffix}", "--ignore-not-found", "-o", "name"))


def reconcile_again(kubectl: Kubectl, name: str) -> None:
    """Have the operator reconcile some times."""
    for number in range(3):
        kubectl("annotate", f"mcd/{name}", f"reconcile={number}", "--overwrite")
        catch_up(kubectl)


def requests_for(kubectl: Kubectl, kind: OptionalKind, since: Mark) -> list[AuditEvent]:
    """What the operator requested of a kind, but for its watch."""
    found = requests_of(kubectl.cluster, kubectl.namespace, since=since)
    return [each for each in found if each.resource == kind.resource and each.verb not in ("list", "watch")]


def what_is_missing(kind: OptionalKind) -> str:
    return f"The {kind.kind} is left as it is, as {kind.resource} cannot be watched: "


def test_without_a_kind_beside_the_servers_they_serve_and_it_comes_as_soon_as_it_is_granted(
    kubectl: Kubectl, operators: Operators
) -> None:
    kind = next(each for each in AUXILIARY if each.kind == "NetworkPolicy")
    mark = kubectl.cluster.audit_mark()
    operator = start(kubectl, operators, ("*", kind.resource))
    assert "; going on without " in operator.wait_for_log("caches are in sync")
    serve(kubectl, "shop", **ALL)
    degraded = wait_condition(kubectl, "shop", "Degraded", "Forbidden")
    assert degraded["status"] == "True"
    assert what_is_missing(kind) in degraded["message"]
    assert f'resource "{kind.resource}"' in degraded["message"]
    assert "cannot be watched" not in degraded["message"].replace(what_is_missing(kind), ""), "nothing else is missing"
    assert condition(kubectl, "shop", "Available")["status"] == "True"
    assert condition(kubectl, "shop", "Progressing")["reason"] == "Complete"
    ready = condition(kubectl, "shop", "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "Forbidden")
    for other in AUXILIARY:
        assert there(kubectl, other, "shop") is (other is not kind), other.kind
    reconcile_again(kubectl, "shop")
    assert requests_for(kubectl, kind, mark) == []
    assert logged_in_a_loop([line for line in operator.lines if f"cannot watch {kind.full_name} in" in line]) == []

    grant(kubectl, operator_rules())
    wait_condition(kubectl, "shop", "Degraded", "AsExpected")
    until(f"there is no {kind.kind}", lambda: there(kubectl, kind, "shop"))
    operator.wait_for_log(f"watching {kind.full_name}", "again")


def test_without_stateful_sets_deployments_go_on_and_one_that_asks_for_lasting_names_waits_for_the_right(
    kubectl: Kubectl, operators: Operators
) -> None:
    mark = kubectl.cluster.audit_mark()
    start(kubectl, operators, ("*", "statefulsets"))
    kubectl.apply(memcached("lasting", 2, workload="StatefulSet"), create=True)
    degraded = wait_condition(kubectl, "lasting", "Degraded", "Forbidden")
    assert what_is_missing(STATEFUL_SETS) in degraded["message"]
    assert condition(kubectl, "lasting", "Available")["status"] == "False"
    serve(kubectl, "shop")
    assert condition(kubectl, "shop", "Degraded")["reason"] == "AsExpected"
    reconcile_again(kubectl, "lasting")
    assert requests_for(kubectl, STATEFUL_SETS, mark) == []

    kubectl("patch", "mcd/shop", "--type=merge", "-p", '{"spec":{"workload":"StatefulSet"}}')
    wait_condition(kubectl, "shop", "Degraded", "Forbidden")
    assert condition(kubectl, "shop", "Available")["status"] == "True", "its servers stay until the others are there"
    grant(kubectl, operator_rules())
    for name in ("lasting", "shop"):
        wait_condition(kubectl, name, "Degraded", "AsExpected")
        assert there(kubectl, STATEFUL_SETS, name)


def test_without_a_kind_that_nobody_asks_for_nothing_is_said_but_once_in_the_log(
    kubectl: Kubectl, operators: Operators
) -> None:
    mark = kubectl.cluster.audit_mark()
    operator = start(kubectl, operators, *(("*", each.resource) for each in KINDS))
    serve(kubectl, "shop", **ALONE)
    wait_condition(kubectl, "shop", "Ready", "AllServersReady")
    # A specification that takes back what was never there.
    kubectl("patch", "mcd/shop", "--type=merge", "-p", '{"spec":{"image":"registry.example.com/memcached:2"}}')
    reconcile_again(kubectl, "shop")
    assert condition(kubectl, "shop", "Degraded")["reason"] == "AsExpected"
    for each in KINDS:
        assert requests_for(kubectl, each, mark) == []
        operator.wait_for_log(f"cannot watch {each.full_name} in", f"Grant list and watch on {each.full_name}")
    about = [line for line in operator.lines if "/shop: " in line]
    assert [line for line in about if "orbidden" in line] == []
    for each in KINDS:
        assert logged_in_a_loop([line for line in operator.lines if f"cannot watch {each.full_name} in" in line]) == []
