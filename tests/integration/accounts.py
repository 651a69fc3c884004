"""Accounts for operators under test whose permissions a test chooses, in one namespace and nowhere else.

The permissions are those of manifests/rbac: what users install is what is tested.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from operator_runtime.testing.waiting import until
from tests.conformance.api import Api
from tests.integration.conftest import ACCOUNT_NAMESPACE, RBAC
from tests.kubectl_in_namespace import Kubectl

Rule = dict[str, Any]

_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
ACCOUNT = "operator"
LOCK = "memcached-operator-lock"
"""The one Lease that the operator has permissions on, and the ConfigMap of a leader for life."""


def rules_of(manifest: Path) -> list[Rule]:
    """The rules of a Role in a file of its own."""
    rules: list[Rule] = yaml.safe_load(manifest.read_text())["rules"]
    return rules


def operator_rules(*, without: Iterable[tuple[str, str]] = ()) -> list[Rule]:
    """The permissions that the operator needs, but for some (verb, resource); "*" stands for every verb."""
    rules = rules_of(RBAC / "role.yaml")
    taken = set(without)
    for rule in rules:
        (resource,) = rule["resources"]
        rule["verbs"] = [verb for verb in rule["verbs"] if not taken & {(verb, resource), ("*", resource)}]
    return [rule for rule in rules if rule["verbs"]]


def account_with_role(kubectl: Kubectl, rules: Sequence[Rule], *, subject_namespace: str | None = None) -> Path:
    """A service account that has these permissions by a Role in kubectl's namespace, and none besides; its folder.

    Args:
        subject_namespace: where the account lives, None for kubectl's namespace.
    """
    home = subject_namespace or kubectl.namespace
    folder = kubectl.cluster.service_account_dir(home, ACCOUNT)
    grant(kubectl, rules)
    kubectl("create", "rolebinding", "operator", "--role=operator", f"--serviceaccount={home}:{ACCOUNT}")
    if rules:
        _await_permission(kubectl, home, rules[0])
    return folder


def _await_permission(kubectl: Kubectl, home: str, rule: Rule) -> None:
    """Wait until it is in force: an API server learns of what it has stored by watches, on a busy machine late."""
    resource = {
        "namespace": kubectl.namespace,
        "group": rule["apiGroups"][0],
        "resource": rule["resources"][0],
        "verb": rule["verbs"][0],
        "name": rule.get("resourceNames", ("",))[0],
    }
    await_allowed(kubectl, f"system:serviceaccount:{home}:{ACCOUNT}", {"resourceAttributes": resource})


def await_allowed(kubectl: Kubectl, user: str, attributes: Mapping[str, Any]) -> None:
    """Wait until a user may do that; the attributes are a SubjectAccessReview's."""
    spec = {"user": user, **attributes}
    api = Api(kubectl.cluster, kubectl.cluster.kubeconfig_path)
    try:
        until(
            f"what was granted to {user} is not in force: {attributes}",
            lambda: api.post(_REVIEWS, {"spec": spec}).expect(201)["status"]["allowed"],
        )
    finally:
        api.close()


def grant(kubectl: Kubectl, rules: Sequence[Rule]) -> None:
    """Make these the permissions of the account, in place of those that it had."""
    kubectl.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": "operator"},
            "rules": list(rules),
        }
    )


def let_account_elect(kubectl: Kubectl) -> None:
    """Let the account for all namespaces elect leaders in kubectl's namespace, where its own is meant."""
    for name in ("cluster_role", "cluster_role_binding"):
        documents = yaml.safe_load_all((RBAC / f"{name}.yaml").read_text())
        (role_or_binding,) = [each for each in documents if each["kind"] in ("Role", "RoleBinding")]
        for subject in role_or_binding.get("subjects", ()):
            subject["namespace"] = ACCOUNT_NAMESPACE
        kubectl.apply(role_or_binding)
