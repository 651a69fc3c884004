"""The kinds that this operator watches, and what their caches hold of each."""

from __future__ import annotations

from memcached_operator.api.names import API_VERSION, KIND, PLURAL
from memcached_operator.memcached.records import deployment_record, memcached_record, pod_record
from operator_runtime import Kind, resource_of

MEMCACHEDS = Kind(resource_of(API_VERSION, KIND, PLURAL), memcached_record)
DEPLOYMENTS = Kind(resource_of("apps/v1", "Deployment", "deployments"), deployment_record)
PODS = Kind(resource_of("v1", "Pod", "pods"), pod_record)
