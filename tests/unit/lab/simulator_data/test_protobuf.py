from lab.simulator_data.protobuf import kinds


def test_the_kinds_are_those_that_are_served_and_those_that_subresources_take() -> None:
    scale = {"name": "deployments/scale", "kind": "Scale", "group": "autoscaling", "version": "v1"}
    resources = [
        {"group": "", "version": "v1", "entry": {"name": "pods", "kind": "Pod"}},
        {"group": "", "version": "v1", "entry": {"name": "pods/status", "kind": "Pod"}},
        {"group": "apps", "version": "v1", "entry": scale},
    ]
    assert kinds({"resources": resources}) == ["autoscaling/v1/Scale", "v1/DeleteOptions", "v1/Pod"]
