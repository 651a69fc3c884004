"""Namespaces: what they have from the beginning, and how they end."""

from kube_simulator.controllers.namespaces import remaining
from kube_simulator.errors import ApiError
from tests.unit.kube_simulator.controllers.world import NAMESPACE, World, condition, deployment

ROOT = "kube-root-ca.crt"


async def test_a_namespace_has_an_account_and_the_root_certificates(world: World) -> None:
    assert world.names("serviceaccounts") == ["default"]
    [certificates] = world.all("configmaps")
    assert (certificates["metadata"]["name"], list(certificates["data"])) == (ROOT, ["ca.crt"])
    assert "kubernetes.io/description" in certificates["metadata"]["annotations"]


async def test_what_a_namespace_has_from_the_beginning_comes_back(world: World) -> None:
    await world.delete("serviceaccounts", "default")
    await world.delete("configmaps", ROOT)
    await world.settle()
    assert (world.names("serviceaccounts"), world.names("configmaps")) == (["default"], [ROOT])
    await world.merge("configmaps", ROOT, {"data": {"ca.crt": "forged", "more": "1"}})
    await world.settle()
    assert world.get("configmaps", ROOT)["data"] == {"ca.crt": ""}


async def test_a_namespace_takes_all_it_has_along(world: World) -> None:
    await world.create("deployments.apps", deployment(replicas=2))
    await world.create("configmaps", {"metadata": {"name": "a"}})
    await world.settle()
    await world.delete("namespaces", NAMESPACE)
    await world.settle()
    assert world.gone("namespaces", NAMESPACE)
    collections = ("pods", "deployments.apps", "replicasets.apps", "configmaps", "serviceaccounts", "events")
    assert [world.all(each) for each in collections] == [[]] * len(collections)


async def test_a_finalizer_in_it_keeps_a_namespace_which_says_so(world: World) -> None:
    await world.create("configmaps", {"metadata": {"name": "a", "finalizers": ["example.com/k"]}})
    await world.delete("namespaces", NAMESPACE)
    await world.settle()
    found = world.get("namespaces", NAMESPACE)
    assert (found["status"]["phase"], found["spec"]["finalizers"]) == ("Terminating", ["kubernetes"])
    content = condition(found, "NamespaceContentRemaining")
    assert (content["status"], content["reason"], content["message"]) == (
        "True",
        "SomeResourcesRemain",
        "Some resources are remaining: configmaps. has 1 resource instances",
    )
    finalizers = condition(found, "NamespaceFinalizersRemaining")
    assert (finalizers["status"], finalizers["reason"], finalizers["message"]) == (
        "True",
        "SomeFinalizersRemain",
        "Some content in the namespace has finalizers remaining: example.com/k in 1 resource instances",
    )
    assert world.names("configmaps") == ["a"], "nothing comes back in a namespace on its way out"
    await world.merge("configmaps", "a", {"metadata": {"finalizers": None}})
    await world.settle()
    assert world.gone("namespaces", NAMESPACE)


def test_the_conditions_stand_in_the_order_of_kubernetes_and_name_what_failed() -> None:
    said = remaining([], [])
    assert list(said) == [
        "NamespaceDeletionDiscoveryFailure",
        "NamespaceDeletionGroupVersionParsingFailure",
        "NamespaceDeletionContentFailure",
        "NamespaceContentRemaining",
        "NamespaceFinalizersRemaining",
    ]
    assert {status for status, _, _ in said.values()} == {"False"}
    failed = remaining([], [ApiError(403, "Forbidden", "a policy says no")])["NamespaceDeletionContentFailure"]
    assert failed[:2] == ("True", "ContentDeletionFailed")
    assert "a policy says no" in failed[2]
