"""The volumes of `spec.tls` and `spec.auth` on an API server: its defaults are no difference."""

from __future__ import annotations

import pytest

from tests.integration.conftest import memcached
from tests.integration.oracle import catch_up, complete
from tests.kubectl_in_namespace import Kubectl

pytestmark = pytest.mark.usefixtures("operator")
TLS = {"tls": {"secretName": "shop-tls", "clientAuth": "Require"}}
AUTH = {"auth": {"secretName": "shop-passwords"}}


@pytest.mark.core
@pytest.mark.cluster("kubernetes")  # whose defaults stand in the volumes
def test_without_a_sidecar_the_kubelet_waits_for_secrets_and_with_one_again_it_does_not(kubectl: Kubectl) -> None:
    complete(kubectl, "shop", 1, workload="StatefulSet", **TLS, **AUTH)
    restart = {"tls": TLS["tls"] | {"reload": "Restart"}}
    for fields, optional in ((restart, {None}), (TLS, {True})):
        kubectl.apply(memcached("shop", 1, workload="StatefulSet", **fields, **AUTH))
        catch_up(kubectl)  # the second change is complete at once where the first has replaced no pod yet
        pod = kubectl.get("statefulset", "shop")["spec"]["template"]["spec"]
        assert {each["secret"].get("optional") for each in pod["volumes"] if "secret" in each} == optional
        assert pod.get("shareProcessNamespace") is (True if optional == {True} else None)
