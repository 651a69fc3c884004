"""Accounts for operators under test whose rights a test chooses, in one namespace and nowhere else."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.integration.conftest import RBAC, Kubectl

Rule = dict[str, Any]

ACCOUNT = "operator"


def operator_rules(*, without: Iterable[tuple[str, str]] = ()) -> list[Rule]:
    """The rights that the operator needs, but for some (verb, resource); "*" stands for every verb."""
    rules: list[Rule] = copy.deepcopy(yaml.safe_load(RBAC.read_text())["rules"])
    taken = set(without)
    for rule in rules:
        (resource,) = rule["resources"]
        rule["verbs"] = [verb for verb in rule["verbs"] if not taken & {(verb, resource), ("*", resource)}]
    return [rule for rule in rules if rule["verbs"]]


def account_with_role(kubectl: Kubectl, rules: Sequence[Rule], *, subject_namespace: str | None = None) -> Path:
    """A service account that has these rights by a Role in kubectl's namespace, and none besides; its folder.

    Args:
        subject_namespace: where the account lives, None for kubectl's namespace.
    """
    home = subject_namespace or kubectl.namespace
    folder = kubectl.cluster.service_account_dir(home, ACCOUNT)
    grant(kubectl, rules)
    kubectl("create", "rolebinding", "operator", "--role=operator", f"--serviceaccount={home}:{ACCOUNT}")
    return folder


def grant(kubectl: Kubectl, rules: Sequence[Rule]) -> None:
    """Make these the rights of the account, in place of those that it had."""
    kubectl.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": "operator"},
            "rules": list(rules),
        }
    )
