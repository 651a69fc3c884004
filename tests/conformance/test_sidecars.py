"""Native sidecars and the Secrets that they share with a pod's containers: how they are stored, and what cannot be."""

from typing import Any

from tests.conformance.api import Answer, Api, Json, causes
from tests.conformance.sample_objects import deployment, path

COLLECTION = path("deployments", "default")  # dry runs alone
IMAGE = "registry.example.com/web:1"
AT = "spec.template.spec"
PROBE = {"exec": {"command": ["test", "-e", "/ready"]}}


def create(api: Api, sidecar: Json | None = None, **spec: Any) -> Answer:
    """A Deployment whose pods have one container, and another one before it."""
    body = deployment("web")
    first = [] if sidecar is None else [{"name": "first", "image": IMAGE, **sidecar}]
    body["spec"]["template"]["spec"] |= {"initContainers": first, **spec}
    return api.post(COLLECTION, body, dryRun="All")


def mounting(*mounts: Json, **volume: Any) -> dict[str, Any]:
    container = {"name": "web", "image": IMAGE, "volumeMounts": list(mounts)}
    return {"containers": [container], "volumes": [{"name": "keys", **volume}]}


def test_a_sidecar_is_kept_as_it_was_given_with_the_defaults_of_a_container(api: Api) -> None:
    given: Json = {
        "restartPolicy": "Always",
        "command": ["sh", "-c", "if true; then\n    echo 'a'\nfi\n"],
        "args": ["", "b"],
        "startupProbe": PROBE | {"periodSeconds": 1, "failureThreshold": 2147483647},
        "volumeMounts": [{"name": "keys", "mountPath": "/keys", "readOnly": True}],
        "securityContext": {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True},
        "resources": {"requests": {"cpu": "5m", "memory": "32Mi"}, "limits": {"memory": "32Mi"}},
    }
    volume = {"secret": {"secretName": "keys", "optional": True}}
    pod = create(api, given, shareProcessNamespace=True, **mounting(**volume)).expect(201)["spec"]["template"]["spec"]
    assert pod["initContainers"] == [
        {
            "name": "first",
            "image": IMAGE,
            "imagePullPolicy": "IfNotPresent",
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            **given,
            "startupProbe": {**given["startupProbe"], "timeoutSeconds": 1, "successThreshold": 1},
        }
    ]
    assert pod["volumes"] == [{"name": "keys", "secret": {"secretName": "keys", "optional": True, "defaultMode": 420}}]
    assert pod["shareProcessNamespace"] is True


def test_a_sidecar_has_a_name_of_its_own_and_mounts_what_there_is(api: Api) -> None:
    mounts = [{"name": "no", "mountPath": "/a"}]
    answer = create(api, {"name": "web", "restartPolicy": "Always", "volumeMounts": mounts})
    at = f"{AT}.initContainers[0]"
    assert causes(answer.expect(422, "Invalid")) == {
        ("FieldValueDuplicate", f"{at}.name"),
        ("FieldValueNotFound", f"{at}.volumeMounts[0].name"),
    }
