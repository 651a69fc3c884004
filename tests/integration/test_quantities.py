"""The form of quantities in which the operator wants resources is the one that the API server writes back.

Otherwise each reconcile of a workload would find a difference.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from memcached_operator.api.quantities import canonical
from memcached_operator.api.v1alpha1 import QUANTITY
from tests.cluster import Cluster

QUANTITIES: list[str | int] = [
    *("1024Mi", "1.5Gi", "2000Mi", "1000Ki", "1048576Ki", "0.5Gi", "123Mi", "1Gi", "1024Gi", "1024Ti", "1.50Gi"),
    *("0.5Ki", "0.1Ki", "0.01Ki", "1Ki", "1023", "1Mi", "3072Ki", "1.5Ti", ".5Mi", "0.25Ki", "1.01Mi", "8Mi", "16Mi"),
    *("0.5", ".5", ".55", "1000m", "1500m", "50m", "1m", "0.01", "1.0", "2.50", "1000000m", "0.1k", "1.23k", "0.01M"),
    *("1000", "1500", "100k", "1M", "1000k", "1500M", "12", "1000T", "10000", "1.00k", "120.00", "10.50"),
    *("1e3", "12e3", "1e4", "1e9", "1e2", "15e2", "1000e3", "1200e1", "9007199254740991"),
    *(1000, 64, 2**40, 10**9, 2**53 - 1),
    *("0", "0Mi", 0, "0.0", "0m", "0e3", "0.00Gi"),
]


@pytest.mark.cluster("kubernetes")
def test_the_api_server_writes_every_quantity_back_as_the_operator_wants_it(cluster: Cluster, namespace: str) -> None:
    assert all(re.fullmatch(QUANTITY, str(quantity)) for quantity in QUANTITIES), "the API server takes no other"
    containers: list[dict[str, Any]] = [
        {"name": f"c{index}", "image": "memcached", "resources": {"limits": {"memory": quantity, "cpu": quantity}}}
        for index, quantity in enumerate(QUANTITIES)
    ]
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "amounts"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "amounts"}},
            "template": {"metadata": {"labels": {"app": "amounts"}}, "spec": {"containers": containers}},
        },
    }
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    cluster.kubectl("create", "--raw", path, "-f", "-", input=json.dumps(deployment))
    found = json.loads(cluster.kubectl("get", "--raw", f"{path}/amounts").stdout)
    written = [each["resources"]["limits"] for each in found["spec"]["template"]["spec"]["containers"]]
    differences = {
        str(quantity): (canonical(quantity), limits)
        for quantity, limits in zip(QUANTITIES, written, strict=True)
        if limits != dict.fromkeys(("memory", "cpu"), canonical(quantity))
    }
    assert differences == {}, json.dumps(differences)
