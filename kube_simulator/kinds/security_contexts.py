"""What is wrong with a securityContext, of a pod and of a container.

Differs from Kubernetes: SELinux' options, AppArmor's and Windows' are not looked at.
"""

from __future__ import annotations

import re
from typing import Final

from kube_simulator.errors import Cause
from kube_simulator.kinds.causes import MAX_INT32, between, duplicate, invalid, one_of, required
from kube_simulator.values import Json

# The fields of a container's securityContext, by their names in Go, in its order.
_SECURITY_FIELDS = {
    "Capabilities": "capabilities",
    "Privileged": "privileged",
    "SELinuxOptions": "seLinuxOptions",
    "WindowsOptions": "windowsOptions",
    "RunAsUser": "runAsUser",
    "RunAsGroup": "runAsGroup",
    "RunAsNonRoot": "runAsNonRoot",
    "ReadOnlyRootFilesystem": "readOnlyRootFilesystem",
    "AllowPrivilegeEscalation": "allowPrivilegeEscalation",
    "ProcMount": "procMount",
    "SeccompProfile": "seccompProfile",
    "AppArmorProfile": "appArmorProfile",
}
_PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
_OF_KERNEL: Final = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_LONGEST_OF_KERNEL: Final = 253


def pod_context_problems(context: Json, at: str) -> list[Cause]:
    """Of a pod's securityContext."""
    found: list[Cause] = []
    for key in ("fsGroup", "runAsUser", "runAsGroup"):
        found += between(f"{at}.{key}", context.get(key), 0, MAX_INT32)
    for index, group in enumerate(context.get("supplementalGroups") or []):
        found += between(f"{at}.supplementalGroups[{index}]", group, 0, MAX_INT32)
    found += _kernel_problems(context, f"{at}.sysctls")
    found += one_of(f"{at}.fsGroupChangePolicy", context.get("fsGroupChangePolicy"), ("Always", "OnRootMismatch"))
    found += _seccomp_problems(context.get("seccompProfile"), f"{at}.seccompProfile")
    policy = context.get("supplementalGroupsPolicy")
    return found + one_of(f"{at}.supplementalGroupsPolicy", policy, ("Merge", "Strict"))


def _kernel_problems(context: Json, field: str) -> list[Cause]:
    found: list[Cause] = []
    names: set[str] = set()
    for index, each in enumerate(context.get("sysctls") or []):
        at, name = f"{field}[{index}].name", each.get("name") or ""
        if not name:
            found.append(required(at))
        elif len(name) > _LONGEST_OF_KERNEL or not re.fullmatch(_OF_KERNEL, name):
            why = f"must have at most {_LONGEST_OF_KERNEL} characters and match regex ^{_OF_KERNEL}$"
            found.append(invalid(at, name, why))
        elif name in names:
            found.append(duplicate(at, name))
        names.add(name)
    return found


def _seccomp_problems(profile: Json | None, at: str) -> list[Cause]:
    if profile is None:
        return []
    kind, path = profile.get("type") or "", profile.get("localhostProfile")
    found = one_of(f"{at}.type", kind, _PROFILES)
    inside = f"{at}.localhostProfile"
    if kind != "Localhost":
        shown = {"Type": kind, "LocalhostProfile": path}
        return (
            found
            if path is None
            else [*found, invalid(inside, shown, "can only be set when seccomp type is Localhost")]
        )
    if path is None:
        return [*found, required(inside, "must be set when seccomp type is Localhost")]
    if path.startswith("/"):
        found.append(invalid(inside, path, "must be a relative path"))
    if ".." in path.split("/"):
        found.append(invalid(inside, path, "must not contain '..'"))
    return found


def context_problems(context: Json, at: str) -> list[Cause]:
    """Of a container's securityContext."""
    found: list[Cause] = []
    for key in ("runAsUser", "runAsGroup"):
        found += between(f"{at}.{key}", context.get(key), 0, MAX_INT32)
    found += _seccomp_problems(context.get("seccompProfile"), f"{at}.seccompProfile")
    if context.get("allowPrivilegeEscalation") is not False:
        return found
    added = (context.get("capabilities") or {}).get("add") or ()
    clashes = {
        "`privileged` to true": context.get("privileged") is True,
        "`capabilities.Add` CAP_SYS_ADMIN": "CAP_SYS_ADMIN" in added,
    }
    shown = {go_name: context.get(name) for go_name, name in _SECURITY_FIELDS.items()}
    if (capabilities := context.get("capabilities")) is not None:
        shown["Capabilities"] = {"Add": capabilities.get("add"), "Drop": capabilities.get("drop")}
    why = "cannot set `allowPrivilegeEscalation` to false and"
    return found + [invalid(at, shown, f"{why} {clash}") for clash, is_set in clashes.items() if is_set]
