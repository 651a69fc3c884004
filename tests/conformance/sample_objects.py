"""The objects that the tests of conformance send, and the paths under which the server keeps them."""

from typing import Any

from operator_runtime.testing.waiting import eventually
from tests.conformance.api import Api, Json

GROUP = "conformance.example.com"
_PREFIXES = {
    "namespaces": "/api/v1",
    "configmaps": "/api/v1",
    "pods": "/api/v1",
    "services": "/api/v1",
    "serviceaccounts": "/api/v1",
    "deployments": "/apis/apps/v1",
    "replicasets": "/apis/apps/v1",
    "statefulsets": "/apis/apps/v1",
    "leases": "/apis/coordination.k8s.io/v1",
    "events": "/apis/events.k8s.io/v1",
    "networkpolicies": "/apis/networking.k8s.io/v1",
    "roles": "/apis/rbac.authorization.k8s.io/v1",
    "poddisruptionbudgets": "/apis/policy/v1",
    "rolebindings": "/apis/rbac.authorization.k8s.io/v1",
    "customresourcedefinitions": "/apis/apiextensions.k8s.io/v1",
    "widgets": f"/apis/{GROUP}/v1",
    "gadgets": f"/apis/{GROUP}/v1",
}


def path(resource: str, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
    """The path of a collection or, with a name, of an object; without a namespace, of all namespaces."""
    parts = [_PREFIXES[resource], f"namespaces/{namespace}" if namespace else None, resource, name, subresource]
    return "/".join(part for part in parts if part is not None)


def config_map(name: str | None, data: Json | None = None, **metadata: Any) -> Json:
    """A ConfigMap: the plainest object, without spec, status or generation, which no controller writes.

    A namespace soon has one of its own, ``kube-root-ca.crt``, so that tests of lists select by label or name.
    """
    named = {} if name is None else {"name": name}
    body: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**named, **metadata}}
    return body if data is None else body | {"data": data}


def lease(name: str, spec: Json | None = None, **metadata: Any) -> Json:
    """A Lease; a namespace of a test has none but the test's own."""
    identity = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    return {**identity, "metadata": {"name": name, **metadata}, "spec": spec or {}}


def deployment(
    name: str, *, app: str | None = None, replicas: int = 1, image: str = "registry.example.com/web:1", **metadata: Any
) -> Json:
    """A Deployment of one container ``web`` whose pods have the label ``app``, which is its name unless given."""
    labels = {"app": app or name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, **metadata},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": image}]},
            },
        },
    }


def stateful_set(name: str, *, replicas: int = 1, image: str = "registry.example.com/web:1", **spec: Any) -> Json:
    """A StatefulSet of pods as :func:`deployment` has them, which are made and ended at once."""
    body = deployment(name, replicas=replicas, image=image)
    spec = {"serviceName": name, "podManagementPolicy": "Parallel", **body["spec"], **spec}
    return {**body, "kind": "StatefulSet", "spec": spec}


def service(name: str, **spec: Any) -> Json:
    """A Service of the pods of :func:`deployment` and :func:`stateful_set`."""
    ports = [{"name": "web", "port": 80, "targetPort": 8080}]
    spec = {"selector": {"app": name}, "ports": ports, **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def widget(name: str, spec: Json | None = None, **metadata: Any) -> Json:
    """A custom resource of :func:`widget_crd`; without a spec, the key is left out."""
    body: Json = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": name, **metadata}}
    return body if spec is None else body | {"spec": spec}


def owner_reference(owner: Json, **fields: Any) -> Json:
    """A reference to an object that the server has stored; not a controller's unless ``controller`` is given."""
    identity = {key: owner[key] for key in ("apiVersion", "kind")}
    return {**identity, "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], **fields}


def widget_crd() -> Json:
    """A CRD with what operators use: defaults, bounds, int32, a list by key, status, scale, printer columns."""
    integer = {"type": "integer", "format": "int32", "minimum": 0}
    spec = {
        "type": "object",
        "default": {},
        "properties": {
            "size": {**integer, "maximum": 100, "default": 1},
            "color": {"type": "string", "enum": ["red", "green"]},
            "notes": {"type": "array", "items": {"type": "string"}},
            "target": {"x-kubernetes-int-or-string": True, "minimum": 1, "pattern": "^[a-z]+$"},
        },
    }
    condition = {
        "type": "object",
        "required": ["type", "status"],
        "properties": {
            **{name: {"type": "string"} for name in ("type", "status", "reason", "message")},
            "lastTransitionTime": {"type": "string", "format": "date-time"},
        },
    }
    conditions = {
        "type": "array",
        "items": condition,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    }
    status = {
        "type": "object",
        "properties": {
            "replicas": integer,
            "selector": {"type": "string"},
            "nodes": {"type": "array", "items": {"type": "string"}},
            "conditions": conditions,
        },
    }
    name = {"type": "string", "maxLength": 20, "pattern": "^[a-z]([-a-z0-9]*[a-z0-9])?$"}
    ready = '.status.conditions[?(@.type=="Ready")].status'
    return custom_resource_definition(
        "Widget",
        {"metadata": {"type": "object", "properties": {"name": name}}, "spec": spec, "status": status},
        subresources={
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.size",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        additionalPrinterColumns=[
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
            {"name": "Ready", "type": "string", "jsonPath": ready},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
            {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
        ],
    )


def custom_resource_definition(kind: str, properties: Json, **version: Any) -> Json:
    """A namespaced CRD of one version, v1, whose schema has these properties at the root."""
    singular = kind.lower()
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{singular}s.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": f"{singular}s", "singular": singular, "shortNames": [singular[:3]]},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema, **version}],
        },
    }


def install(api: Api, crd: Json) -> None:
    """Create a CRD and wait until its resource is served."""
    api.post(path("customresourcedefinitions"), crd).expect(201)
    served = f"/apis/{crd['spec']['group']}/v1/{crd['spec']['names']['plural']}"
    eventually(lambda: api.get(served).status, lambda status: status == 200)
