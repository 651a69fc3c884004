"""The ground that every operator under test stands on: a control plane with the CRD, and an account that may work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import bystander
from lab.audit import AuditEvent, Mark
from lab.control_plane import ControlPlane, Options

_CRD = Path(__file__).resolve().parent.parent / "manifests" / "crd" / "cache.example.com_memcacheds.yaml"
_ACCOUNT_NAMESPACE, _ACCOUNT = "memcached-operator-system", "memcached-operator"
_USER = f"system:serviceaccount:{_ACCOUNT_NAMESPACE}:{_ACCOUNT}"
# Longer than any run: a token that expires in the middle would measure something else.
_TOKEN_S = 6 * 3600

# One ClusterRole for all, the union of what they need: an operator that asks for less is not slowed by the rest.
_RBAC = f"""\
apiVersion: v1
kind: Namespace
metadata: {{name: {_ACCOUNT_NAMESPACE}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: {_ACCOUNT}}}
rules:
  - apiGroups: [cache.example.com]
    resources: [memcacheds, memcacheds/status, memcacheds/finalizers]
    verbs: [get, list, watch, create, update, patch, delete]
  - apiGroups: [apps]
    resources: [deployments, statefulsets]
    verbs: [get, list, watch, create, update, patch, delete]
  - apiGroups: [""]
    resources: [services, configmaps]
    verbs: [get, list, watch, create, update, patch, delete]
  - apiGroups: [policy, networking.k8s.io]
    resources: [poddisruptionbudgets, networkpolicies]
    verbs: [get, list, watch, create, update, patch, delete]
  - apiGroups: [""]
    resources: [pods]
    verbs: [get, list, watch]
  - apiGroups: ["", events.k8s.io]
    resources: [events]
    verbs: [create, patch]
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [get, list, watch, create, update, patch, delete]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: {_ACCOUNT}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {_ACCOUNT}}}
subjects: [{{kind: ServiceAccount, name: {_ACCOUNT}, namespace: {_ACCOUNT_NAMESPACE}}}]
---
apiVersion: v1
kind: Namespace
metadata: {{name: {bystander.NAMESPACE}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: {bystander.USER}, namespace: {bystander.NAMESPACE}}}
rules:
  - apiGroups: [""]
    resources: [configmaps]
    verbs: [get, create]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: {bystander.USER}, namespace: {bystander.NAMESPACE}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: {bystander.USER}}}
subjects: [{{kind: User, name: {bystander.USER}, apiGroup: rbac.authorization.k8s.io}}]
"""


@contextmanager
def prepared_control_plane() -> Iterator[ControlPlane]:
    """A fresh control plane with the CRD and the operator's account, whose requests alone are audited."""
    with ControlPlane(Options(audit_users=[_USER])) as control_plane:
        control_plane.kubectl("apply", "-f", "-", input=_RBAC)
        control_plane.kubectl("apply", "-f", str(_CRD))
        control_plane.kubectl("wait", "--for=condition=Established", "--timeout=30s", "-f", str(_CRD))
        yield control_plane


def account_dir(control_plane: ControlPlane) -> Path:
    """The folder of the operator's service account, as it is mounted into a pod."""
    return control_plane.service_account_dir(_ACCOUNT_NAMESPACE, _ACCOUNT, duration_s=_TOKEN_S)


def operator_requests(control_plane: ControlPlane, since: Mark) -> list[AuditEvent]:
    """What the operator has asked of the API server since a mark in the audit log."""
    return control_plane.audit_events(since=since, user=_USER)
