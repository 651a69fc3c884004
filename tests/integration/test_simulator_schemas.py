"""What the simulator's files say of Kubernetes, held against what an API server says."""

import json

import pytest

from kube_simulator.schema import kubernetes
from lab.simulator_data import schemas
from tests.cluster import Cluster
from tests.conformance.api import Api, Json

pytestmark = pytest.mark.cluster("kubernetes")


@pytest.fixture(scope="module")
def collected(cluster: Cluster) -> Json:
    """What `./dev simulator-schemas` would write down now."""
    client = Api(cluster, cluster.kubeconfig_path)

    def get(path: str, accept: str) -> Json:
        return client.request("GET", path, headers={"Accept": accept}).expect(200)

    try:
        return schemas.collect(get)
    finally:
        client.close()


def test_what_is_served_is_described_as_the_server_describes_it(collected: Json) -> None:
    found = {(each["group"], each["version"], each["entry"]["name"]): each for each in collected["resources"]}
    served = {(group, version, name) for (group, version), names in schemas.SERVED.items() for name in names}
    assert found.keys() == served
    for (group, version, name), each in found.items():
        assert kubernetes.discovery_entry(group, version, name) == each["entry"]
    for resource in kubernetes.builtin_resources():
        each = found[resource.group, resource.version, resource.plural]
        assert resource.schema.ref == each["definition"]
    assert kubernetes.groups() == collected["groups"]


def test_the_schemas_are_the_server_s(collected: Json) -> None:
    assert kubernetes.schemas().keys() == collected["definitions"].keys()
    different = [name for name, schema in kubernetes.schemas().items() if collected["definitions"][name] != schema]
    assert different == []


def test_all_else_that_the_server_has_is_known(collected: Json, cluster: Cluster) -> None:
    crds = json.loads(cluster.kubectl("get", "crds", "-o=json").stdout)["items"]
    custom = {crd["spec"]["group"] for crd in crds}  # of other tests, on the same server
    others = [tuple(other) for other in collected["others"] if other[0] not in custom]
    assert len(others) > 50
    assert [other for other in others if not kubernetes.is_known(*other)] == []


def test_the_version_is_the_server_s(collected: Json) -> None:
    own = kubernetes.version_info()
    assert (own["gitVersion"], own["minor"]) == (collected["version"]["gitVersion"], collected["version"]["minor"])
