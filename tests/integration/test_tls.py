"""`spec.tls` and `spec.auth` as a user sees them: what is refused, what pods are made of it, and what is told.

There is no kubelet: a test writes what the pods' sidecars would have said.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from memcached_operator.memcached.wanted.secrets import script
from operator_runtime.testing.waiting import eventually
from tests.integration.conftest import memcached
from tests.integration.oracle import (
    catch_up,
    complete,
    condition,
    create_memcached,
    deployment_writes,
    make_ready,
    patch_pods,
    pods_of,
    wait_condition,
    writes,
)
from tests.integration.other_client import asked, events_of
from tests.integration.requests import taken
from tests.integration.test_render import render
from tests.kubectl_in_namespace import Kubectl

pytestmark = pytest.mark.usefixtures("operator")
TLS = {"tls": {"secretName": "shop-tls", "clientAuth": "Require"}}
AUTH = {"auth": {"secretName": "shop-passwords"}}
MISSING = "there is no Secret shop-tls with the key tls.crt"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"tls": {}}, "spec.tls.secretName: Required value"),
        ({"tls": {"secretName": "Shop"}}, 'spec.tls.secretName: Invalid value: "Shop": spec.tls.secretName in body'),
        ({"tls": {"secretName": "a" * 254}}, "spec.tls.secretName: Too long: may not be more than 253"),
        (
            {"tls": {"secretName": "a", "clientAuth": "Always", "reload": "Never"}},
            'spec.tls.clientAuth: Unsupported value: "Always": supported values: "None", "Request", "Require"',
        ),
        ({"auth": {}}, "spec.auth.secretName: Required value"),
        ({"auth": {"secretName": "a."}}, 'spec.auth.secretName: Invalid value: "a."'),
    ],
)
def test_a_wrong_value_is_refused_when_it_is_written(kubectl: Kubectl, spec: dict[str, Any], words: str) -> None:
    refused = kubectl.run("apply", "-f", "-", input=json.dumps(memcached("shop", 1, **spec)), check=False)
    assert refused.returncode == 1
    assert words in refused.stderr


def test_a_flag_that_a_field_stands_for_is_told_with_the_field(kubectl: Kubectl) -> None:
    kubectl.apply(memcached("shop", 1, extraArgs=["-Z", "-o", "ssl_key=/a", "-Y", "/b"]), create=True)
    found = wait_condition(kubectl, "shop", "Degraded", "InvalidSpec")
    assert found["message"] == (
        "spec.extraArgs[0]: must not contain -Z: spec.tls says how servers speak TLS; set that field instead, "
        'got "-Z"; spec.extraArgs[2]: must not contain ssl_key: spec.tls says how servers speak TLS; set that field '
        'instead, got "ssl_key=/a"; spec.extraArgs[3]: must not contain -Y: spec.auth says which passwords servers ask '
        'for; set that field instead, got "-Y"'
    )


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
@pytest.mark.cluster("kubernetes")  # the simulator has no pod security
def test_pods_with_secrets_and_a_sidecar_are_admitted_under_the_restricted_profile(kubectl: Kubectl, kind: str) -> None:
    kubectl("label", "namespace", kubectl.namespace, "pod-security.kubernetes.io/enforce=restricted")
    complete(kubectl, "shop", 1, workload=kind, **TLS, **AUTH)


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_pods_have_their_secrets_and_a_sidecar(kubectl: Kubectl, kind: str) -> None:
    complete(kubectl, "shop", 1, workload=kind, **TLS, **AUTH)
    (name,) = pods_of(kubectl, "shop")
    pod = kubectl.get("pod", name)["spec"]
    (server,), (sidecar,) = pod["containers"], pod["initContainers"]
    options = [
        "-Z",
        "-o",
        "ssl_chain_cert=/etc/memcached/tls/tls.crt,ssl_key=/etc/memcached/tls/tls.key,ssl_min_version=2,"
        "ssl_ca_cert=/etc/memcached/tls/ca.crt,ssl_verify_mode=2",
        *("-Y", "/etc/memcached/auth/password-file"),
    ]
    assert server["command"][-5:] == options
    assert sidecar["restartPolicy"] == "Always"
    assert sidecar["command"] == ["sh", "-c", script(), "reloader"]
    assert sidecar["args"] == ["shop-tls", "shop-passwords", *options]
    volumes = [(each["name"], each["secret"]) for each in pod["volumes"]]
    assert volumes == [
        ("tls", {"secretName": "shop-tls", "optional": True, "defaultMode": 0o644}),
        ("auth", {"secretName": "shop-passwords", "optional": True, "defaultMode": 0o644}),
    ]
    mark = kubectl.cluster.audit_mark()
    catch_up(kubectl)
    assert taken(writes(kubectl, "shop", mark)) <= {"memcacheds/status 200"}, "what the API server fills in is no drift"


def test_what_somebody_changes_of_it_is_put_right(kubectl: Kubectl) -> None:
    complete(kubectl, "shop", 1, **TLS)
    wanted = kubectl.get("deployment", "shop")["spec"]["template"]["spec"]
    for pointer, value in (
        ("/volumes/0/secret/secretName", '"other"'),
        ("/initContainers/0/command/2", '"sleep 1d"'),
        ("/containers/0/volumeMounts/0/mountPath", '"/elsewhere"'),
        ("/shareProcessNamespace", "false"),
    ):
        patch = f'[{{"op":"replace","path":"/spec/template/spec{pointer}","value":{value}}}]'
        kubectl("patch", "deployment", "shop", "--type=json", "-p", patch)

        def put_right() -> dict[str, Any]:
            found: dict[str, Any] = kubectl.get("deployment", "shop")["spec"]["template"]["spec"]
            mounts = found["containers"][0]["volumeMounts"]
            found["containers"][0]["volumeMounts"] = [each for each in mounts if each["mountPath"] != "/elsewhere"]
            return found

        eventually(put_right, lambda found: found == wanted, what=pointer)


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_when_it_is_taken_out_the_template_is_the_plain_one_again(kubectl: Kubectl, kind: str) -> None:
    complete(kubectl, "plain", 0, workload=kind)
    complete(kubectl, "shop", 0, workload=kind, **TLS, **AUTH)
    kubectl("patch", "mc/shop", "--type=merge", "-p", '{"spec":{"tls":null,"auth":null}}')
    plain = kubectl.get(kind, "plain")["spec"]["template"]["spec"]
    eventually(lambda: kubectl.get(kind, "shop")["spec"]["template"]["spec"], lambda found: found == plain)
    noted = kubectl.get(kind, "shop")["spec"]["template"]["metadata"]["annotations"]
    assert noted == kubectl.get(kind, "plain")["spec"]["template"]["metadata"]["annotations"]


def say(kubectl: Kubectl, pods: list[str], message: str, *, started: bool = False) -> None:
    """What the kubelet tells of sidecars that ended once with these words, and wait or let memcached start now."""
    ended = {"exitCode": 1, "reason": "Error", "message": f"{message}\n"}
    sidecar = {"name": "reloader", "image": "memcached", "imageID": "", "restartCount": 1, "ready": started}
    patch_pods(
        kubectl,
        pods,
        initContainerStatuses=[
            sidecar | {"started": started, "state": {"running": {}}, "lastState": {"terminated": ended}}
        ],
    )


def test_a_secret_that_is_missing_is_told_with_its_key_and_over_when_servers_start(kubectl: Kubectl) -> None:
    create_memcached(kubectl, "shop", 2, **TLS)
    pods = pods_of(kubectl, "shop")
    say(kubectl, pods, f"SecretNotFound: {MISSING}")
    found = wait_condition(kubectl, "shop", "Degraded", "SecretNotFound")
    assert found["message"] == f"{MISSING}. Running servers continue; new ones start once this is corrected."
    available = condition(kubectl, "shop", "Available")
    assert available["message"] == f"0 of 2 servers are ready: SecretNotFound: {MISSING}"
    assert condition(kubectl, "shop", "Ready")["reason"] == "SecretNotFound"

    say(kubectl, pods, "CertificateInvalid: key tls.key of the Secret shop-tls: no match")
    wait_condition(kubectl, "shop", "Degraded", "CertificateInvalid")
    warnings = [each.reason for each in events(kubectl) if each.type == "Warning"]
    assert {"SecretNotFound", "CertificateInvalid"} <= set(warnings)

    say(kubectl, pods, "CertificateInvalid: key tls.key of the Secret shop-tls: no match", started=True)
    make_ready(kubectl, pods)
    wait_condition(kubectl, "shop", "Degraded", "AsExpected")
    wait_condition(kubectl, "shop", "Ready", "AllServersReady")
    assert taken(deployment_writes(kubectl, "shop")) == {"deployments 201"}


def events(kubectl: Kubectl) -> list[Any]:
    found: list[Any] = asked(kubectl.cluster, lambda client: events_of(client, kubectl.namespace, "shop"))
    return found


def test_passwords_in_the_clear_are_warned_of_once(kubectl: Kubectl) -> None:
    complete(kubectl, "shop", 1, **AUTH)
    assert "set spec.tls beside spec.auth" in condition(kubectl, "shop", "Discouraged")["message"]
    kubectl("annotate", "mc/shop", "a=b")
    catch_up(kubectl)
    found = eventually(lambda: [each for each in events(kubectl) if each.reason == "PasswordsInTheClear"], bool)
    assert [(each.type, each.series) for each in found] == [("Warning", None)]
    assert found[0].note.startswith("Passwords are sent unencrypted")


def test_a_change_of_it_is_said_to_replace_servers(kubectl: Kubectl, tmp_path: Path) -> None:
    complete(kubectl, "shop", 0, workload="StatefulSet", **TLS)
    live = kubectl("get", "mc,sts", "shop", "-o=yaml")
    changed = memcached("shop", 0, workload="StatefulSet", tls={"secretName": "other"}, **AUTH)
    changed["metadata"]["namespace"] = kubectl.namespace
    (tmp_path / "live.yaml").write_text(live)
    said = render(yaml.safe_dump(changed), f"--diff={tmp_path / 'live.yaml'}")
    lines = [line for line in said.stdout.splitlines() if line.startswith("#")]
    assert lines[1:] == [
        "# rolling: no server runs, so none is replaced",
        '#   spec.tls was {"secretName":"shop-tls","clientAuth":"Require","reload":"Live"}, is to be '
        '{"secretName":"other","clientAuth":"None","reload":"Live"}',
        '#   spec.auth was absent, is to be {"secretName":"shop-passwords"}',
    ]
