"""The kinds that this operator watches, and what their caches hold of each."""

from __future__ import annotations

from collections.abc import Mapping

from memcached_operator.api.names import API_VERSION, KIND, PLURAL, Workload
from memcached_operator.memcached.records import memcached_record
from memcached_operator.memcached.wanted.budget import budget_record
from memcached_operator.memcached.wanted.network_policy import NETWORK_POLICY
from memcached_operator.memcached.wanted.server_list import PUBLICATION
from memcached_operator.memcached.wanted.service import SERVICE
from memcached_operator.memcached.workloads.pods import pod_record
from memcached_operator.memcached.workloads.records import WorkloadRecord, deployment_record, stateful_set_record
from memcached_operator.memcached.workloads.resizing import resizable
from operator_runtime import Kind, resource_of

MEMCACHEDS = Kind(resource_of(API_VERSION, KIND, PLURAL), memcached_record)
DEPLOYMENTS = Kind(resource_of("apps/v1", "Deployment", "deployments"), deployment_record)
STATEFUL_SETS = Kind(resource_of("apps/v1", "StatefulSet", "statefulsets"), stateful_set_record)
PODS = Kind(resource_of("v1", "Pod", "pods"), pod_record)
RESIZABLE_PODS = Kind(PODS.resource, resizable)
"""Pods, read one at a time and in no cache."""
SERVICES = Kind(resource_of("v1", "Service", "services"), SERVICE.record)
BUDGETS = Kind(resource_of("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"), budget_record)
NETWORK_POLICIES = Kind(resource_of("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"), NETWORK_POLICY.record)
CONFIG_MAPS = Kind(resource_of("v1", "ConfigMap", "configmaps"), PUBLICATION.record)
WORKLOADS: Mapping[Workload, Kind[WorkloadRecord]] = {"Deployment": DEPLOYMENTS, "StatefulSet": STATEFUL_SETS}
