"""What is wrong with a pod's spec, in a Pod or in a template of pods.

Differs from Kubernetes: volumes of rarely used types are not looked at.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from functools import partial

from kube_simulator.errors import Cause
from kube_simulator.kinds.causes import (
    MAX_INT32,
    between,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    one_of,
    required,
    unlike,
)
from kube_simulator.kinds.containers import container_problems
from kube_simulator.kinds.metadata import annotation_problems, label_problems
from kube_simulator.kinds.names import dns_label, dns_subdomain
from kube_simulator.kinds.pod_defaults import GRACE_PERIOD_S
from kube_simulator.kinds.pod_placement import affinity_problems, spread_problems, toleration_problems
from kube_simulator.kinds.security_contexts import pod_context_problems
from kube_simulator.values import Json

_MAX_MODE = 0o777
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
# What a volume must say, by its type.
_NEEDED = {
    "secret": "secretName",
    "configMap": "name",
    "hostPath": "path",
    "persistentVolumeClaim": "claimName",
}


def template_problems(template: Json, field: str, *, maker: str = "ReplicaSet") -> list[Cause]:
    """Of a template of pods that are to run for ever, such as a Deployment's; `maker`: the kind that makes them."""
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    # Kubernetes leaves "metadata" out of these paths.
    found = label_problems(metadata.get("labels") or {}, f"{field}.labels")
    found += annotation_problems(metadata.get("annotations") or {}, f"{field}.annotations")
    found += spec_problems(spec, f"{field}.spec")
    if spec.get("restartPolicy", "Always") != "Always":
        found.append(not_supported(f"{field}.spec.restartPolicy", spec["restartPolicy"], ("Always",)))
    if spec.get("activeDeadlineSeconds") is not None:
        why = f"activeDeadlineSeconds in {maker} is not Supported"
        found.append(forbidden(f"{field}.spec.activeDeadlineSeconds", why))
    return found


def spec_problems(spec: Json, field: str) -> list[Cause]:
    """Of a spec whose defaults are filled in."""
    volumes = spec.get("volumes") or []
    names = {each.get("name") or "" for each in volumes} - {""}
    host_network = bool(spec.get("hostNetwork"))
    containers, first = spec.get("containers") or [], spec.get("initContainers") or []
    found = _volume_problems(volumes, f"{field}.volumes")
    if not containers:
        found.append(required(f"{field}.containers"))
    problems = partial(
        container_problems,
        volumes=names,
        host_network=host_network,
        grace_s=spec.get("terminationGracePeriodSeconds", GRACE_PERIOD_S),
    )
    found += problems(containers, f"{field}.containers")
    taken = {each.get("name") or "" for each in containers} - {""}
    at = f"{field}.initContainers"
    found += problems(first, at, taken=taken, first=True)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        why = "ShareProcessNamespace and HostPID cannot both be enabled"
        found.append(invalid(f"{field}.securityContext.shareProcessNamespace", True, why))
    found += one_of(f"{field}.restartPolicy", spec.get("restartPolicy"), _RESTART_POLICIES)
    found += one_of(f"{field}.dnsPolicy", spec.get("dnsPolicy"), _DNS_POLICIES)
    found += label_problems(spec.get("nodeSelector") or {}, f"{field}.nodeSelector")
    found += pod_context_problems(spec.get("securityContext") or {}, f"{field}.securityContext")
    found += affinity_problems(spec.get("affinity") or {}, f"{field}.affinity")
    found += spread_problems(spec.get("topologySpreadConstraints") or [], f"{field}.topologySpreadConstraints")
    for key, rule in (
        ("serviceAccountName", dns_subdomain),
        ("nodeName", dns_subdomain),
        ("hostname", dns_label),
        ("subdomain", dns_label),
        ("priorityClassName", dns_subdomain),
    ):
        if spec.get(key):
            found += unlike(f"{field}.{key}", spec[key], rule(spec[key]))
    found += between(f"{field}.activeDeadlineSeconds", spec.get("activeDeadlineSeconds"), 1, MAX_INT32)
    found += toleration_problems(spec.get("tolerations") or [], f"{field}.tolerations")
    return found + _alias_problems(spec.get("hostAliases") or [], f"{field}.hostAliases")


def _volume_problems(volumes: Sequence[Json], field: str) -> list[Cause]:
    found: list[Cause] = []
    names: set[str] = set()
    for index, volume in enumerate(volumes):
        at, name = f"{field}[{index}]", volume.get("name") or ""
        if not name:
            found.append(required(f"{at}.name"))
        elif wrong := dns_label(name):
            found += unlike(f"{at}.name", name, wrong)
        elif name in names:
            found.append(duplicate(f"{at}.name", name))
        names.add(name)
        first, *more = [key for key in volume if key != "name"] or [""]
        if not first:
            found.append(required(at, "must specify a volume type"))
        found += [forbidden(f"{at}.{key}", "may not specify more than 1 volume type") for key in more]
        needed = _NEEDED.get(first, "")
        if needed and not (volume[first] or {}).get(needed):
            found.append(required(f"{at}.{first}.{needed}"))
        mode = (volume.get(first) or {}).get("defaultMode", 0)
        if not 0 <= mode <= _MAX_MODE:
            why = "must be a number between 0 and 0777 (octal), both inclusive"
            found.append(invalid(f"{at}.{first}.defaultMode", mode, why))
    return found


def _alias_problems(aliases: Sequence[Json], field: str) -> list[Cause]:
    found: list[Cause] = []
    for index, each in enumerate(aliases):
        found += address_problems(each.get("ip") or "", f"{field}[{index}].ip")
        for number, name in enumerate(each.get("hostnames") or []):
            found += unlike(f"{field}[{index}].hostnames[{number}]", name, dns_subdomain(name))
    return found


def address_problems(address: str, at: str) -> list[Cause]:
    """Of an IP address."""
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return [invalid(at, address, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")]
    return []
