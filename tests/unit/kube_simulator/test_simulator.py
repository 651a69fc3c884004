"""The simulator as a whole: what a client with its kubeconfig can do, and how its parts end and come back."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from kube_simulator import Options, Simulator
from kube_simulator.errors import ApiError
from lab import audit
from operator_runtime.testing.cluster import SimulatedCluster
from operator_runtime.testing.waiting import eventually
from tests.conformance.api import Api, Json
from tests.conformance.sample_objects import config_map, deployment, path

CONFIG_MAPS, DEPLOYMENTS, PODS = (path(each, "default") for each in ("configmaps", "deployments", "pods"))
STREAMING = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}


def await_status(api: Api, field: str, desired: object) -> None:
    """Wait until the Deployment `web` has this in its status."""
    eventually(lambda: api.get(f"{DEPLOYMENTS}/web").json["status"].get(field), lambda found: found == desired)


def first_event(api: Api, **query: str) -> Any:
    """What a watch of ConfigMaps begins with."""
    with api.watch(CONFIG_MAPS, **query) as stream:
        return stream.take(1)[0]


@pytest.mark.simulator(name="demo")
def test_its_kubeconfig_is_of_the_cluster_of_its_name(simulator: SimulatedCluster, api: Api) -> None:
    config = json.loads(simulator.kubeconfig_path.read_text())
    assert (config["current-context"], config["clusters"][0]["cluster"]["server"]) == ("demo", simulator.server)
    api.get("/api/v1/namespaces/default/serviceaccounts/default").expect(200)  # from the beginning


def test_a_folder_of_a_service_account_is_what_its_pod_would_have(simulator: SimulatedCluster) -> None:
    folder = simulator.service_account_dir("default", "robot")
    first = (folder / "token").read_text()
    assert (folder / "namespace").read_text() == "default"
    assert (folder / "ca.crt").read_text() == simulator.ca_path.read_text()
    assert simulator.in_cluster_environment == {
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": str(simulator.simulator.port),
    }
    robot = Api(simulator, None, token=first)
    who = robot.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {}).expect(201)
    robot.close()
    assert who["status"]["userInfo"]["username"] == "system:serviceaccount:default:robot"
    assert simulator.service_account_dir("default", "robot") == folder
    assert (folder / "token").read_text() != first, "a second call rotates the token"
    with pytest.raises(ApiError, match="from 10 minutes"):
        simulator.service_account_dir("default", "robot", duration_s=10)


def test_with_nodes_pods_become_ready(api: Api) -> None:
    api.post(DEPLOYMENTS, deployment("web", replicas=2)).expect(201)
    await_status(api, "readyReplicas", 2)


@pytest.mark.simulator(pods_ready_after_s=None)
def test_without_controllers_nothing_comes_of_a_deployment_until_they_are_back(
    simulator: SimulatedCluster, api: Api
) -> None:
    simulator.stop_controller_manager()
    api.post(DEPLOYMENTS, deployment("web")).expect(201)
    simulator.restart_apiserver()
    api.close()
    found = api.get(f"{DEPLOYMENTS}/web").expect(200)
    assert "observedGeneration" not in found["status"], "a restarted API server starts no controllers"
    simulator.start_controller_manager()
    await_status(api, "replicas", 1)


def test_the_api_server_comes_back_with_its_state_and_forgets_its_history(
    simulator: SimulatedCluster, api: Api
) -> None:
    kept = api.post(CONFIG_MAPS, config_map("kept")).expect(201)
    held = api.get(CONFIG_MAPS).json["metadata"]["resourceVersion"]
    api.post(CONFIG_MAPS, config_map("later")).expect(201)
    simulator.run(simulator.simulator.stop_apiserver())
    api.close()
    with pytest.raises(ConnectionRefusedError):
        api.get(CONFIG_MAPS)
    simulator.start_apiserver()
    api.close()
    assert api.get(f"{CONFIG_MAPS}/kept").expect(200) == kept
    assert first_event(api, resourceVersion=held).object["code"] == 410


def test_watches_can_be_ended_and_the_history_forgotten(simulator: SimulatedCluster, api: Api) -> None:
    held = api.get(CONFIG_MAPS).json["metadata"]["resourceVersion"]
    with api.watch(CONFIG_MAPS, resourceVersion=held) as stream:
        simulator.end_watches()
        assert list(stream) == []
    for name in "ab":
        api.post(CONFIG_MAPS, config_map(name)).expect(201)
    page = api.get(CONFIG_MAPS, limit="1").json["metadata"]["continue"]
    assert first_event(api, resourceVersion=held).key == ("ADDED", "a")
    api.post(CONFIG_MAPS, config_map("c")).expect(201)
    simulator.forget_history()
    assert first_event(api, resourceVersion=held).object["code"] == 410
    api.get(CONFIG_MAPS, limit="1", **{"continue": page}).expect(410, "Expired")


def test_a_client_that_leaves_ends_its_watch(simulator: SimulatedCluster, api: Api) -> None:
    def streams() -> int:
        return simulator.call(lambda: len(simulator.simulator._watches.streams))

    with api.watch(CONFIG_MAPS):
        assert streams() == 1
    eventually(streams, lambda count: count == 0)


def records(simulator: SimulatedCluster) -> list[Json]:
    """What stands in the audit log."""
    return [json.loads(line) for line in simulator.simulator.audit_log.read_bytes().splitlines()]


def test_its_audit_log_has_a_line_for_each_request_of_a_client(simulator: SimulatedCluster, api: Api) -> None:
    api.post(CONFIG_MAPS, config_map("a"), fieldManager="me").expect(201)
    stranger = Api(simulator, None, token="wrong")
    stranger.get(f"{CONFIG_MAPS}/b").expect(401)
    stranger.close()
    created, refused = records(simulator)
    assert created == {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "stage": "ResponseComplete",
        "requestURI": f"{CONFIG_MAPS}?fieldManager=me",
        "verb": "create",
        "user": {"username": "lab-admin", "groups": ["system:authenticated", "system:masters"]},
        "sourceIPs": ["127.0.0.1"],
        "userAgent": "conformance/1 (test)",
        "objectRef": {"resource": "configmaps", "namespace": "default", "name": "a", "apiVersion": "v1"},
        "responseStatus": {"metadata": {}, "code": 201},
        **{key: created[key] for key in ("auditID", "requestReceivedTimestamp", "stageTimestamp")},
    }
    assert (refused["user"], refused["responseStatus"]["code"], refused["objectRef"]["name"]) == ({}, 401, "b")
    assert [each.verb for each in audit.read(simulator.simulator.audit_log)] == ["create", "get"]


def test_a_watch_is_audited_when_it_begins_and_when_it_ends(simulator: SimulatedCluster, api: Api) -> None:
    with api.watch(CONFIG_MAPS) as stream:
        assert [(each["stage"], each["verb"]) for each in records(simulator)] == [("ResponseStarted", "watch")]
        simulator.end_watches()
        list(stream)
    began, ended = records(simulator)
    assert (ended["stage"], ended["auditID"]) == ("ResponseComplete", began["auditID"])
    assert [each.stage for each in audit.read(simulator.simulator.audit_log)] == ["ResponseComplete"]


@pytest.mark.parametrize(
    ("method", "of", "what"),
    [
        ("GET", "/apis/autoscaling/v2/horizontalpodautoscalers", "horizontalpodautoscalers of autoscaling/v2"),
        ("GET", f"{PODS}/web-1/exec", "pods/exec"),
        ("DELETE", CONFIG_MAPS, "deletecollection"),
    ],
)
def test_what_kubernetes_has_and_the_simulator_has_not_is_501_with_its_name(
    api: Api, method: str, of: str, what: str
) -> None:
    refused = api.request(method, of).expect(501, "NotImplemented")
    assert refused["message"].startswith("the simulator does not do this: ")
    assert what in refused["message"]
    api.get(f"{PODS}/web-1/nothing").expect(404, "NotFound")


@pytest.mark.simulator(streaming_lists=False)
def test_without_streaming_lists_they_are_refused(api: Api) -> None:
    api.get(CONFIG_MAPS, watch="1", **STREAMING).expect(422)


async def test_at_the_end_nothing_is_left(tmp_path: Path) -> None:
    async with Simulator(Options(directory=tmp_path, memcached=False)) as simulator:
        port, directory = simulator.port, simulator.directory
        assert directory.is_relative_to(tmp_path)
    assert not directory.exists()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)
    names = [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert names == []


async def test_a_port_that_is_taken_is_said_and_leaves_nothing(simulator: SimulatedCluster, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="address already in use"):
        async with Simulator(Options(directory=tmp_path, port=simulator.simulator.port, memcached=False)):
            pass
    assert os.listdir(tmp_path) == ["lock"]
