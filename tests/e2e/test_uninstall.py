"""Installing, and uninstalling in the order of the documents: what was not there before is not there after."""

from __future__ import annotations

import json

from lab.node.node import Node
from operator_runtime.testing.waiting import eventually
from tests.e2e.node_cluster import INSTALL, LOCK, OPERATOR, SAMPLE, SYSTEM, fresh_namespace, nodes_of
from tests.kubectl_in_namespace import Kubectl

# Of kinds that come and go by themselves: the record of what happened, and leases that programs keep renewing.
_PASSING = {"events", "leases.coordination.k8s.io"}


def test_uninstalling_leaves_nothing_behind(node: Node, operator_images: None) -> None:
    before = _everything(node)
    with fresh_namespace(node, "e2e-tenant") as tenant:
        node.kubectl("apply", "--server-side", "-f", str(INSTALL / "cluster.yaml"))
        Kubectl(node.plane, SYSTEM)("rollout", "status", f"deployment/{OPERATOR}", "--timeout=55s")
        tenant("apply", "-f", str(SAMPLE))
        tenant.wait("mcd/example-memcached", "condition=Available")
        # In the order of docs/uninstall.md.
        node.kubectl("delete", "memcacheds", "--all", "--all-namespaces", "--cascade=foreground")
        node.kubectl("delete", "-f", str(INSTALL / "cluster.yaml"))
        assert tenant.names("deployments,replicasets,pods") == []
        node.kubectl("delete", "namespace", "e2e-tenant")
    left = eventually(lambda: _everything(node) - before, lambda found: not found)
    assert left == set()


def test_an_operator_of_one_namespace_leaves_others_alone(node: Node, operator_images: None) -> None:
    node.kubectl("apply", "-f", str(INSTALL / "crds.yaml"))
    try:
        with fresh_namespace(node, "e2e-ours") as watched, fresh_namespace(node, "e2e-theirs") as unwatched:
            watched("apply", "-f", str(INSTALL / "namespaced.yaml"))
            watched("rollout", "status", f"deployment/{OPERATOR}", "--timeout=55s")
            for kubectl in (unwatched, watched):  # in this order: what comes of the watched one comes after
                kubectl("apply", "-f", str(SAMPLE))
            watched.wait("mcd/example-memcached", "condition=Available")
            assert len(nodes_of(watched, "example-memcached")) == 3
            assert unwatched.names("deployments,replicasets,pods,leases") == []
            assert unwatched.get("mcd", "example-memcached")["status"].keys() == {"conditions"}  # filled in
            _assert_permissions_end_at(watched)

            watched("delete", "memcacheds", "--all", "--cascade=foreground", "--timeout=55s")
            watched("delete", "-f", str(INSTALL / "namespaced.yaml"))
            watched("delete", "lease", LOCK, "--ignore-not-found")
            eventually(lambda: _made_in(watched), lambda found: found == [])
            assert unwatched.names("memcacheds") == ["memcached.cache.example.com/example-memcached"]
            unwatched("delete", "memcacheds", "--all")
    finally:
        node.kubectl("delete", "-f", str(INSTALL / "crds.yaml"))


def _assert_permissions_end_at(watched: Kubectl) -> None:
    account = f"--as=system:serviceaccount:{watched.namespace}:{OPERATOR}"
    for what in (("list", "memcacheds.cache.example.com"), ("create", "deployments.apps"), ("list", "pods")):
        assert watched("auth", "can-i", *what, account).strip() == "yes", what
        for elsewhere in (("-n", "e2e-theirs"), ("--all-namespaces",)):
            answer = watched.cluster.kubectl("auth", "can-i", *what, account, *elsewhere, check=False)
            assert answer.stdout.strip() == "no", (what, elsewhere)


def _made_in(kubectl: Kubectl) -> list[str]:
    kinds = "deployments,replicasets,pods,leases,serviceaccounts,roles,rolebindings,poddisruptionbudgets,configmaps"
    # Kubernetes' own, in every namespace.
    own = {"serviceaccount/default", "configmap/kube-root-ca.crt"}
    return [name for name in kubectl.names(kinds) if name not in own]


def _everything(node: Node) -> set[str]:
    """The names of all objects of all kinds that can be listed."""
    listed = node.kubectl("api-resources", "--verbs=list", "-o", "name").stdout.split()
    kinds = ",".join(kind for kind in listed if kind.removesuffix(".events.k8s.io") not in _PASSING)
    found = json.loads(node.kubectl("get", kinds, "--all-namespaces", "-o", "json", check=False).stdout)["items"]
    return {
        f"{each['kind']} {each['metadata'].get('namespace', '')}/{each['metadata']['name']}"
        for each in found
        if each["kind"] not in ("Event", "APIService")
        and not each["metadata"].get("namespace", "").startswith("test-")
        and not each["metadata"]["name"].startswith("test-")
    }
