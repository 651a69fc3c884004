"""Bodies of built-in kinds that Go cannot decode, and some that it can."""

from typing import Any

from tests.unit.kube_simulator.schema.schema_parts import (
    Json,
    merged,
)

_PODS: Json = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
_DEPLOYMENT: Json = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": _PODS},
}


def _container(**fields: Any) -> Json:
    return {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i", **fields}]}}}}


_REPLICAS: list[Any] = ["3", 1.5, 3.0, 2**31, True, {}, [], None]
_CPUS: list[Any] = [{}, "x", True, 1, "1Qi", "1.5Gi"]
_SURGES: list[Any] = [True, 1.5, {}, 2**40, "25%", 1]
_DEPLOYMENTS: list[Json] = [
    *({"spec": {"replicas": value}} for value in _REPLICAS),
    *({"spec": {"paused": "x"}}, {"spec": "x"}, {"spec": []}, {"spec": {"template": {"spec": {"containers": {}}}}}),
    *({"spec": {"template": {"spec": {"containers": [1]}}}}, _container(image=1), _container(args=[1])),
    *(_container(env=[{"name": "A", "value": 1}]), _container(ports=[{"containerPort": "x"}])),
    *(_container(resources={"limits": {"cpu": value}}) for value in _CPUS),
    *({"spec": {"strategy": {"rollingUpdate": {"maxSurge": value}}}} for value in _SURGES),
    *({"metadata": {"labels": {"a": 1}}}, {"metadata": {"creationTimestamp": "x"}}, {"metadata": "x"}),
    *({"metadata": {"creationTimestamp": 1}}, {"metadata": {"name": 1}}, {"metadata": {"labels": {"a": None}}}),
    *({"metadata": {"creationTimestamp": "2026-13-01T00:00:00Z"}}, {"metadata": {"managedFields": [{"fieldsV1": 1}]}}),
    {"metadata": {"creationTimestamp": "2026-02-30T00:00:00Z"}},
    {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Zx"}},
    merged(_container(imagee=1), {"spec": {"replcas": 1, "Replicas": 1}, "foo": 1, "metadata": {"bar": 1}}),
]
_MAPS: list[Json] = [
    *({"data": {"k": 1}}, {"data": []}, {"data": {"k": None}}, {"binaryData": {"k": "!"}}),
    *({"binaryData": {"k": 1}}, {"immutable": "x"}, {"binaryData": {"k": "YQ=="}}),
]
BODIES: list[tuple[str, str, Json]] = [
    *(("apps/v1", "deployments", merged(_DEPLOYMENT, each)) for each in _DEPLOYMENTS),
    *(("v1", "configmaps", {"metadata": {"name": "c"}, **each}) for each in _MAPS),
    *(
        ("v1", "secrets", {"metadata": {"name": "c"}, "data": {"k": value}})
        for value in (
            "!",
            1,
            "YQ==",
            "",
            "YW\nI=",
            "YWI",
            "Y=Q=",
            "YQ=",
            "YWJjYW",
            "YQ==x",
            "YQ==YQ==",
            "YWJj!",
            "YWJjY",
            "=",
        )
    ),
    *(
        ("coordination.k8s.io/v1", "leases", {"metadata": {"name": "c"}, "spec": each})
        for each in (
            *({"renewTime": value} for value in ("x", "2026-01-01T00:00:00Z", 1, "2026-01-01T00:00:00.123456Z", "")),
            *({"renewTime": value} for value in ("2026-01-01t00:00:00.123456Z", "2026-01-01T00:00:00.1234567Z")),
            *({"renewTime": "2026-01-01T00:00:00.123456+02:00"}, {"leaseDurationSeconds": 1.5}),
        )
    ),
    (
        "rbac.authorization.k8s.io/v1",
        "roles",
        {"metadata": {"name": "r"}, "rules": [{"verbs": "x"}]},
    ),
]
