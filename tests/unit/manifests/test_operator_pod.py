"""The operator's pod against what the operator's settings and code say."""

from __future__ import annotations

import inspect
import re

from lab import ROOT
from memcached_operator.settings import Settings
from memcached_operator.settings_schema import SCHEMA
from operator_runtime.election.lease_election import RELEASE_TIMEOUT_S
from operator_runtime.events.recorder import EventRecorder
from tests.unit.manifests.install_files import container, deployment, pod


def settings() -> Settings:
    """Those that the pod's flags make."""
    by_flag = {flag: option.name for option in SCHEMA.options for flag in option.flags}
    flags: dict[str, object] = {}
    for argument in container()["args"]:
        flag, _, value = argument.partition("=")
        flags[by_flag[flag]] = value or "true"
    return SCHEMA.load(flags, {})


def test_flags_are_the_operators_and_no_default_but_what_is_told_to_others() -> None:
    found, ports = settings(), {port["name"]: port["containerPort"] for port in container()["ports"]}
    assert (found.leader_elect, found.log_format) == (True, "json")
    assert found.metrics_bind_address == f":{ports['metrics']}"
    assert found.health_probe_bind_address == f":{ports['probes']}"


def test_variables_are_known_to_the_operator_and_the_image_is_its_own_default() -> None:
    variables = {each["name"]: each for each in container()["env"]}
    known = {option.variable for option in SCHEMA.options}
    others = {"MEMCACHED_API_GROUP", "POD_NAME", "POD_NAMESPACE"}
    assert variables.keys() - known == others, "read for the kind's names, for the election, and for people"
    default = SCHEMA.load({}, {}).memcached_image
    assert variables["RELATED_IMAGE_MEMCACHED"]["value"] == default
    assert variables["OPERATOR_NAME"]["value"] == SCHEMA.load({}, {}).operator_name


def test_the_kubelet_waits_longer_than_a_shutdown_takes() -> None:
    flush_s = inspect.signature(EventRecorder).parameters["flush_s"].default
    shutdown_s = settings().shutdown_timeout_s + flush_s + RELEASE_TIMEOUT_S
    assert pod()["terminationGracePeriodSeconds"] > shutdown_s


def test_probes_ask_the_port_of_probes() -> None:
    requested = {kind: container()[f"{kind}Probe"]["httpGet"] for kind in ("liveness", "readiness")}
    assert requested == {
        "liveness": {"path": "/healthz", "port": "probes"},
        "readiness": {"path": "/readyz", "port": "probes"},
    }


def test_one_of_two_replicas_may_go_and_a_single_node_will_do() -> None:
    assert deployment()["spec"]["replicas"] == 2
    (spread,) = pod()["topologySpreadConstraints"]
    assert spread["whenUnsatisfiable"] == "ScheduleAnyway"


def test_memory_is_bounded_and_cpu_is_not() -> None:
    assert container()["resources"]["limits"].keys() == {"memory"}, "a throttled leader renews its Lease late"
    mebibytes = {name: int(each["memory"].removesuffix("Mi")) for name, each in container()["resources"].items()}
    # docs/performance.md: 54.8 MiB with 3,000 Memcacheds of two servers.
    assert mebibytes["requests"] > 54.8
    assert mebibytes["limits"] >= 4 * mebibytes["requests"]


def test_no_user_id_is_named_as_openshift_refuses_any_but_its_own_and_the_image_s_is_a_number() -> None:
    """The kubelet cannot judge runAsNonRoot by the name of an image's user."""
    named = [
        where for where in (pod(), container()) if {"runAsUser", "runAsGroup", "fsGroup"} & {*where["securityContext"]}
    ]
    assert named == []
    assert re.findall(r"^USER (.+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)[-1] == "65532:65532"


def test_nothing_can_be_written_nobody_is_root_and_no_volume_is_needed() -> None:
    assert container()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    context = pod()["securityContext"]
    assert context == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert "volumes" not in pod()
