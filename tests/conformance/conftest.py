"""Fixtures of the conformance tests: a client, a namespace, and a CRD of their own."""

from collections.abc import Iterator

import pytest

from tests.cluster import Cluster
from tests.conformance.api import Api
from tests.conformance.sample_objects import install, path, widget_crd


@pytest.fixture
def api(cluster: Cluster) -> Iterator[Api]:
    """The administrator's client."""
    client = Api(cluster, cluster.kubeconfig_path)
    yield client
    client.close()


@pytest.fixture(scope="session")
def widgets(cluster: Cluster) -> Iterator[None]:
    """The resource ``widgets`` is served; nobody changes its CRD, because that ends every watch of it."""
    client = Api(cluster, cluster.kubeconfig_path)
    crd = widget_crd()
    install(client, crd)
    client.close()
    yield
    client.delete(path("customresourcedefinitions", name=crd["metadata"]["name"]))
    client.close()
