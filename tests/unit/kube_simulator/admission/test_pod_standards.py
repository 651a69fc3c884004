"""The rules of the Pod Security Standards, in the words of a real API server (1.36) for the same pods."""

from typing import Any

import pytest

from kube_simulator.admission.pod_standards import Level, violations
from kube_simulator.values import Json

GOOD: Json = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"


def said(level: Level, *containers: Json, annotations: Json | None = None, **spec: Any) -> str:
    found = violations(level, {"annotations": annotations or {}}, {"containers": list(containers), **spec})
    return ", ".join(map(str, found))


def one(name: str = "x", **security: Any) -> Json:
    """A container that `restricted` allows, but for what is said."""
    context = {**GOOD, **security}
    return {"name": name, "securityContext": {key: value for key, value in context.items() if value is not None}}


BARE = {"name": "x", "image": "i"}


def test_everything_is_allowed_where_nothing_is_asked_for() -> None:
    assert said("privileged", one(privileged=True), hostPID=True) == ""


def test_a_bare_pod_is_baseline_and_lacks_all_that_restricted_wants() -> None:
    assert said("baseline", BARE) == ""
    assert said("restricted", BARE) == (
        'allowPrivilegeEscalation != false (container "x" must set securityContext.allowPrivilegeEscalation=false), '
        'unrestricted capabilities (container "x" must set securityContext.capabilities.drop=["ALL"]), '
        'runAsNonRoot != true (pod or container "x" must set securityContext.runAsNonRoot=true), '
        'seccompProfile (pod or container "x" must set securityContext.seccompProfile.type to '
        '"RuntimeDefault" or "Localhost")'
    )
    assert said("restricted", one()) == ""


def test_the_pod_may_say_for_its_containers_what_it_is_not_to_be_root_and_its_seccomp_profile() -> None:
    bare = one(runAsNonRoot=None, seccompProfile=None)
    context = {"runAsNonRoot": True, "seccompProfile": {"type": "Localhost", "localhostProfile": "p"}}
    assert said("restricted", bare, securityContext=context) == ""


IN_BOTH: list[tuple[Json, Json, str]] = [
    (one(privileged=True), {}, 'privileged (container "x" must not set securityContext.privileged=true)'),
    (one(), {"hostPID": True, "hostIPC": True}, "host namespaces (hostPID=true, hostIPC=true)"),
    (one(), {"hostNetwork": True}, "host namespaces (hostNetwork=true)"),
    (
        {**one(), "ports": [{"hostPort": 80}, {"hostPort": 443}, {"containerPort": 3}]},
        {},
        'hostPort (container "x" uses hostPorts 443, 80)',
    ),
    (
        one(seLinuxOptions={"type": "t2", "level": "s0"}),
        {"securityContext": {"seLinuxOptions": {"type": "t1", "user": "u", "role": "r"}}},
        'seLinuxOptions (pod and container "x" set forbidden securityContext.seLinuxOptions: '
        'types "t1", "t2"; user may not be set; role may not be set)',
    ),
    (
        one(seLinuxOptions={"type": "container_t", "user": "u"}),
        {},
        'seLinuxOptions (container "x" set forbidden securityContext.seLinuxOptions: user may not be set)',
    ),
    (
        one(seccompProfile={"type": "Unconfined"}),
        {"securityContext": {"seccompProfile": {"type": "Unconfined"}}},
        'seccompProfile (pod and container "x" must not set securityContext.seccompProfile.type to "Unconfined")',
    ),
    (
        one(),
        {"securityContext": {"sysctls": [{"name": "kernel.x"}, {"name": "net.ipv4.tcp_rmem"}, {"name": "kernel.y"}]}},
        "forbidden sysctls (kernel.x, kernel.y)",
    ),
    (
        one(windowsOptions={"hostProcess": True}),
        {},
        'hostProcess (container "x" must not set securityContext.windowsOptions.hostProcess=true)',
    ),
    (
        {
            **one(),
            "livenessProbe": {"httpGet": {"host": "1.2.3.4"}},
            "lifecycle": {"preStop": {"tcpSocket": {"host": "q"}}},
        },
        {},
        'probe or lifecycle host (container "x" uses probe or lifecycle hosts "1.2.3.4", "q")',
    ),
    (
        one(),
        {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}},
        'forbidden AppArmor profile (pod must not set AppArmor profile type to "Unconfined")',
    ),
]


@pytest.mark.parametrize(("container", "spec", "words"), IN_BOTH)
def test_what_neither_profile_allows(container: Json, spec: Json, words: str) -> None:
    assert said("baseline", container, **spec) == words
    assert said("restricted", container, **spec) == words


IN_RESTRICTED: list[tuple[Json, Json, str]] = [
    (
        one(capabilities={"add": ["CHOWN"]}),
        {},
        'unrestricted capabilities (container "x" must set securityContext.capabilities.drop=["ALL"]; '
        'container "x" must not include "CHOWN" in securityContext.capabilities.add)',
    ),
    (
        one(),
        {"volumes": [{"name": "n", "nfs": {}}, {"name": "g", "iscsi": {}}, {"name": "e", "emptyDir": {}}]},
        'restricted volume types (volumes "n", "g" use restricted volume types "iscsi", "nfs")',
    ),
    (
        one(runAsNonRoot=False),
        {"securityContext": {"runAsNonRoot": False}},
        'runAsNonRoot != true (pod and container "x" must not set securityContext.runAsNonRoot=false)',
    ),
    (
        one(),
        {"securityContext": {"runAsNonRoot": False}},
        "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)",
    ),
    (one(runAsUser=0), {}, 'runAsUser=0 (container "x" must not set runAsUser=0)'),
    (
        one(procMount="Unmasked"),
        {"hostUsers": False},
        'procMount (container "x" must not set securityContext.procMount to "Unmasked")',
    ),
    (
        one(),
        {"volumes": [{"name": "h", "nfs": {}}]},
        'restricted volume types (volume "h" uses restricted volume type "nfs")',
    ),
]


@pytest.mark.parametrize(("container", "spec", "words"), IN_RESTRICTED)
def test_what_restricted_alone_does_not_allow(container: Json, spec: Json, words: str) -> None:
    assert said("baseline", container, **spec) == ""
    assert said("restricted", container, **spec) == words


def test_paths_of_the_host_and_strong_capabilities_have_other_names_under_restricted() -> None:
    volumes = [{"name": "h", "hostPath": {}}, {"name": "g", "hostPath": {}}]
    assert said("baseline", one(), volumes=volumes) == 'hostPath volumes (volumes "h", "g")'
    assert said("restricted", one(), volumes=volumes) == (
        'restricted volume types (volumes "h", "g" use restricted volume type "hostPath")'
    )
    strong = one(capabilities={"drop": ["ALL"], "add": ["SYS_ADMIN", "NET_ADMIN", "NET_BIND_SERVICE", "CHOWN"]})
    refused = "in securityContext.capabilities.add"
    assert said("baseline", strong) == (
        f'non-default capabilities (container "x" must not include "NET_ADMIN", "SYS_ADMIN" {refused})'
    )
    assert said("restricted", strong) == (
        f'unrestricted capabilities (container "x" must not include "CHOWN", "NET_ADMIN", "SYS_ADMIN" {refused})'
    )


def test_all_containers_are_looked_at_those_for_the_start_first() -> None:
    spec: Json = {"initContainers": [one("i", privileged=True)], "ephemeralContainers": [one("e", privileged=True)]}
    assert said("baseline", one("x", privileged=True), one("y"), **spec) == (
        'privileged (containers "i", "x", "e" must not set securityContext.privileged=true)'
    )


def test_a_pod_with_users_of_its_own_may_be_root_among_them() -> None:
    root = one(runAsNonRoot=None, runAsUser=0)
    assert said("restricted", root, hostUsers=False) == ""
    assert "runAsUser=0" in said("restricted", root)
    assert said("baseline", one(procMount="Unmasked"), hostUsers=False) == ""
    assert said("baseline", one(procMount="Unmasked")).startswith("procMount")


def test_of_windows_nothing_is_asked_that_it_has_not() -> None:
    bare = one(allowPrivilegeEscalation=None, capabilities=None, seccompProfile=None)
    assert said("restricted", bare, os={"name": "windows"}) == ""
    assert said("restricted", {"name": "x"}, os={"name": "windows"}).startswith("runAsNonRoot")


def test_the_order_is_that_of_baseline_and_then_of_restricted() -> None:
    words = said("restricted", one(privileged=True, runAsUser=0, seccompProfile=None), hostNetwork=True)
    assert [part.partition(" (")[0] for part in words.split("), ")] == [
        "host namespaces",
        "privileged",
        "runAsUser=0",
        "seccompProfile",
    ]


def test_an_annotation_for_app_armor_counts_as_the_field_of_its_container() -> None:
    def words(*containers: Json, **spec: Any) -> str:
        return said("baseline", *containers, annotations={f"{APP_ARMOR}x": "unconfined"}, **spec)

    forbidden = f'must not set AppArmor profile type to "Unconfined", "{APP_ARMOR}x="unconfined""'
    bare = one("x"), one("y")
    assert words(*bare) == f'forbidden AppArmor profiles (container "x" and annotation {forbidden})'
    unconfined = {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}
    assert words(*bare, **unconfined) == f"forbidden AppArmor profiles (pod and annotation {forbidden})"
    for good in ("runtime/default", "localhost/p", ""):
        assert said("baseline", *bare, annotations={f"{APP_ARMOR}x": good}) == ""
