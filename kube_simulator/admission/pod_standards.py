"""The Pod Security Standards: what a pod may not have under `baseline` and under `restricted`, latest version.

Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/; the words are those of a real server.

Differs from Kubernetes: nothing known of the latest version; there are no older ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from kube_simulator.store.go_text import quoted
from kube_simulator.values import Json

Level = Literal["privileged", "baseline", "restricted"]
LEVELS: tuple[Level, ...] = ("privileged", "baseline", "restricted")
"""From the laxest to the strictest."""

_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_CAPABILITIES = frozenset(
    {
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE"),
        *("SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    }
)
_SE_LINUX_TYPES = frozenset({"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"})
_SYSCTLS = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    }
)
_VOLUMES = frozenset(
    {
        *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected"),
        "secret",
    }
)


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that a pod breaks: its name, and what of the pod breaks it."""

    rule: str
    detail: str

    def __str__(self) -> str:
        return f"{self.rule} ({self.detail})"


@dataclass(frozen=True, slots=True)
class _Pod:
    annotations: Json
    spec: Json
    containers: tuple[Json, ...]
    """With those for the start and those for the curious, in this order: init, plain, ephemeral."""

    @property
    def security(self) -> Json:
        return self.spec.get("securityContext") or {}

    @property
    def windows(self) -> bool:
        return (self.spec.get("os") or {}).get("name") == "windows"

    @property
    def own_users(self) -> bool:
        """It has a user namespace of its own, where root is nobody outside."""
        return self.spec.get("hostUsers") is False

    def having(self, test: Callable[[Json], object]) -> list[str]:
        """The names of the containers for whose security context that is true."""
        return [each["name"] for each in self.containers if test(each.get("securityContext") or {})]


Check = Callable[[_Pod], Iterator[Violation]]


def violations(level: Level, metadata: Json, spec: Json) -> list[Violation]:
    """What of a pod, or of the template of one, that level does not allow."""
    containers = (
        *(spec.get("initContainers") or ()),
        *(spec.get("containers") or ()),
        *(spec.get("ephemeralContainers") or ()),
    )
    pod = _Pod(metadata.get("annotations") or {}, spec, containers)
    return [violation for check in _CHECKS[level] for violation in check(pod)]


def _app_armor(pod: _Pod) -> Iterator[Violation]:
    """By the field, and by the annotation before it, which Kubernetes makes a container's field of."""

    def profile(security: Json) -> str:
        return str((security.get("appArmorProfile") or {}).get("type", ""))

    whole = profile(pod.security)
    annotated = {
        key.removeprefix(_APP_ARMOR): value
        for key, value in pod.annotations.items()
        if key.startswith(_APP_ARMOR) and value not in ("", "runtime/default") and not value.startswith("localhost/")
    }
    kinds = {
        each["name"]: profile(each.get("securityContext") or {})
        or ("Unconfined" if each["name"] in annotated and whole != "Unconfined" else "")
        for each in pod.containers
    }
    allowed = ("", "RuntimeDefault", "Localhost")
    names = [name for name, kind in kinds.items() if kind not in allowed]
    values = {kind for kind in (whole, *kinds.values()) if kind not in allowed}
    values.update(f'{_APP_ARMOR}{name}="{value}"' for name, value in annotated.items())
    if values:
        said = _setters(whole not in allowed, names)
        said += [_plural("annotation", len(annotated))] if annotated else []
        listed = ", ".join(f'"{value}"' for value in sorted(values))
        rule = _plural("forbidden AppArmor profile", len(values))
        yield Violation(rule, f"{' and '.join(said)} must not set AppArmor profile type to {listed}")


def _baseline_capabilities(pod: _Pod) -> Iterator[Violation]:
    def excess(security: Json) -> set[str]:
        return set(_capabilities(security, "add")) - _CAPABILITIES

    if names := pod.having(excess):
        yield Violation("non-default capabilities", _not_included(pod, names, excess))


def _restricted_capabilities(pod: _Pod) -> Iterator[Violation]:
    def excess(security: Json) -> set[str]:
        return set(_capabilities(security, "add")) - {"NET_BIND_SERVICE"}

    if pod.windows:
        return
    said = []
    if names := pod.having(lambda security: "ALL" not in _capabilities(security, "drop")):
        said.append(f'{_containers(names)} must set securityContext.capabilities.drop=["ALL"]')
    if names := pod.having(excess):
        said.append(_not_included(pod, names, excess))
    if said:
        yield Violation("unrestricted capabilities", "; ".join(said))


def _not_included(pod: _Pod, names: list[str], excess: Callable[[Json], set[str]]) -> str:
    found = sorted(set().union(*(excess(each.get("securityContext") or {}) for each in pod.containers)))
    return f"{_containers(names)} must not include {_quoted(found)} in securityContext.capabilities.add"


def _capabilities(security: Json, which: str) -> Sequence[str]:
    return (security.get("capabilities") or {}).get(which) or ()


def _host_namespaces(pod: _Pod) -> Iterator[Violation]:
    shared = [f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(field)]
    if shared:
        yield Violation("host namespaces", ", ".join(shared))


def _host_paths(pod: _Pod) -> Iterator[Violation]:
    names = [each["name"] for each in pod.spec.get("volumes") or () if "hostPath" in each]
    if names:
        yield Violation("hostPath volumes", f"{_plural('volume', len(names))} {_quoted(names)}")


def _host_ports(pod: _Pod) -> Iterator[Violation]:
    ports = {
        each["name"]: [str(port["hostPort"]) for port in each.get("ports") or () if port.get("hostPort")]
        for each in pod.containers
    }
    names = [name for name, found in ports.items() if found]
    if names:
        # In the order of text, as Kubernetes has them.
        found = sorted({port for each in ports.values() for port in each})
        uses = f"{_containers(names)} {_uses(names)} {_plural('hostPort', len(found))}"
        yield Violation("hostPort", f"{uses} {', '.join(found)}")


def _hosts(pod: _Pod) -> Iterator[Violation]:
    hosts = {each["name"]: set(_probed_hosts(each)) for each in pod.containers}
    names = [name for name, found in hosts.items() if found]
    if names:
        found = sorted(set().union(*hosts.values()))
        uses = f"{_containers(names)} {_uses(names)} {_plural('probe or lifecycle host', len(found))}"
        yield Violation("probe or lifecycle host", f"{uses} {_quoted(found)}")


def _probed_hosts(container: Json) -> Iterator[str]:
    lifecycle = container.get("lifecycle") or {}
    handlers = [container.get(probe) for probe in ("livenessProbe", "readinessProbe", "startupProbe")]
    for handler in (*handlers, lifecycle.get("postStart"), lifecycle.get("preStop")):
        for way in ("httpGet", "tcpSocket"):
            host = ((handler or {}).get(way) or {}).get("host")
            if host:
                yield host


def _privileged(pod: _Pod) -> Iterator[Violation]:
    if names := pod.having(lambda security: security.get("privileged")):
        yield Violation("privileged", f"{_containers(names)} must not set securityContext.privileged=true")


def _se_linux(pod: _Pod) -> Iterator[Violation]:
    def options(security: Json) -> Json:
        return security.get("seLinuxOptions") or {}

    def bad(security: Json) -> bool:
        found = options(security)
        return found.get("type", "") not in _SE_LINUX_TYPES or bool(found.get("user") or found.get("role"))

    setters = _setters(bad(pod.security), pod.having(bad))
    if not setters:
        return
    everywhere = [options(pod.security), *(options(each.get("securityContext") or {}) for each in pod.containers)]
    types = sorted({each["type"] for each in everywhere if each.get("type", "") not in _SE_LINUX_TYPES})
    said = [f"{_plural('type', len(types))} {_quoted(types)}"] if types else []
    said += [f"{field} may not be set" for field in ("user", "role") if any(each.get(field) for each in everywhere)]
    forbidden = f"{' and '.join(setters)} set forbidden securityContext.seLinuxOptions"
    yield Violation("seLinuxOptions", f"{forbidden}: {'; '.join(said)}")


def _seccomp_of(security: Json) -> str:
    return str((security.get("seccompProfile") or {}).get("type", ""))


def _baseline_seccomp(pod: _Pod) -> Iterator[Violation]:
    def bad(security: Json) -> bool:
        return _seccomp_of(security) not in ("", "RuntimeDefault", "Localhost")

    if setters := _setters(bad(pod.security), pod.having(bad)):
        detail = f'{" and ".join(setters)} must not set securityContext.seccompProfile.type to "Unconfined"'
        yield Violation("seccompProfile", detail)


def _restricted_seccomp(pod: _Pod) -> Iterator[Violation]:
    if pod.windows:
        return
    bad = list(_baseline_seccomp(pod))
    yield from bad
    unset = pod.having(lambda security: not _seccomp_of(security))
    if not bad and unset and not _seccomp_of(pod.security):
        must = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
        yield Violation("seccompProfile", f"pod or {_containers(unset)} {must}")


def _sysctls(pod: _Pod) -> Iterator[Violation]:
    names = [each["name"] for each in pod.security.get("sysctls") or () if each["name"] not in _SYSCTLS]
    if names:
        yield Violation("forbidden sysctls", ", ".join(names))


def _host_process(pod: _Pod) -> Iterator[Violation]:
    def bad(security: Json) -> bool:
        return bool((security.get("windowsOptions") or {}).get("hostProcess"))

    if setters := _setters(bad(pod.security), pod.having(bad)):
        detail = f"{' and '.join(setters)} must not set securityContext.windowsOptions.hostProcess=true"
        yield Violation("hostProcess", detail)


def _escalation(pod: _Pod) -> Iterator[Violation]:
    names = pod.having(lambda security: security.get("allowPrivilegeEscalation") is not False)
    if names and not pod.windows:
        detail = f"{_containers(names)} must set securityContext.allowPrivilegeEscalation=false"
        yield Violation("allowPrivilegeEscalation != false", detail)


def _baseline_proc_mount(pod: _Pod) -> Iterator[Violation]:
    if not pod.own_users:
        yield from _restricted_proc_mount(pod)


def _restricted_proc_mount(pod: _Pod) -> Iterator[Violation]:
    def mounted(security: Json) -> str:
        return str(security.get("procMount", "Default"))

    if names := pod.having(lambda security: mounted(security) != "Default"):
        found = sorted({mounted(each.get("securityContext") or {}) for each in pod.containers} - {"Default"})
        yield Violation("procMount", f"{_containers(names)} must not set securityContext.procMount to {_quoted(found)}")


def _restricted_volumes(pod: _Pod) -> Iterator[Violation]:
    kinds = {each["name"]: set(each) - {"name"} - _VOLUMES for each in pod.spec.get("volumes") or ()}
    names = [name for name, found in kinds.items() if found]
    if names:
        found = sorted(set().union(*kinds.values()))
        volumes = f"{_plural('volume', len(names))} {_quoted(names)}"
        types = f"{_plural('restricted volume type', len(found))} {_quoted(found)}"
        yield Violation("restricted volume types", f"{volumes} {_uses(names)} {types}")


def _non_root(pod: _Pod) -> Iterator[Violation]:
    if pod.own_users:
        return
    wanted = pod.security.get("runAsNonRoot")
    refusing = pod.having(lambda security: security.get("runAsNonRoot") is False)
    silent = pod.having(lambda security: security.get("runAsNonRoot") is None)
    rule = "runAsNonRoot != true"
    if setters := _setters(wanted is False, refusing):
        yield Violation(rule, f"{' and '.join(setters)} must not set securityContext.runAsNonRoot=false")
    elif silent and wanted is None:
        yield Violation(rule, f"pod or {_containers(silent)} must set securityContext.runAsNonRoot=true")


def _root_user(pod: _Pod) -> Iterator[Violation]:
    def is_root(security: Json) -> bool:
        return security.get("runAsUser") == 0

    setters = _setters(is_root(pod.security), pod.having(is_root))
    if setters and not pod.own_users:
        yield Violation("runAsUser=0", f"{' and '.join(setters)} must not set runAsUser=0")


def _setters(pod: bool, containers: list[str]) -> list[str]:
    return [*(["pod"] if pod else []), *([_containers(containers)] if containers else [])]


def _containers(names: list[str]) -> str:
    return f"{_plural('container', len(names))} {_quoted(names)}"


def _uses(names: list[str]) -> str:
    return "uses" if len(names) == 1 else "use"


def _plural(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(map(quoted, names))


_CHECKS: dict[Level, tuple[Check, ...]] = {
    "privileged": (),
    "baseline": (
        _app_armor,
        _baseline_capabilities,
        _host_namespaces,
        _host_paths,
        _host_ports,
        _hosts,
        _privileged,
        _baseline_proc_mount,
        _se_linux,
        _baseline_seccomp,
        _sysctls,
        _host_process,
    ),
    "restricted": (
        _app_armor,
        _host_namespaces,
        _host_ports,
        _hosts,
        _privileged,
        _se_linux,
        _sysctls,
        _host_process,
        _escalation,
        _restricted_capabilities,
        _restricted_proc_mount,
        _restricted_volumes,
        _non_root,
        _root_user,
        _restricted_seccomp,
    ),
}
