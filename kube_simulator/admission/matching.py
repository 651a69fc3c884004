"""Which writes a webhook or a policy is about: rules, and selectors of namespaces and objects.

Differs from Kubernetes: the two API groups of Events do not stand for each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kube_simulator.admission import namespaces
from kube_simulator.admission.request import AdmissionRequest
from kube_simulator.resources import Registry
from kube_simulator.store.selectors import from_label_selector
from kube_simulator.store.store import Store
from kube_simulator.values import Json

GROUP = "admissionregistration.k8s.io"
_ALL = "*"


def is_exempt(request: AdmissionRequest) -> bool:
    """Webhooks and policies have no say in what is said of webhooks and policies: nobody can be locked out."""
    return request.target.resource.group == GROUP


def matched_version(
    rules: Sequence[Json], request: AdmissionRequest, registry: Registry, policy: str | None
) -> str | None:
    """The version in which the first rule that is met wants to see the object; None if no rule is met.

    Args:
        policy: `Exact` for the version of the request alone; else (`Equivalent`) in whatever version the resource has.
    """
    own = request.target.resource
    versions = [own.version]
    if policy != "Exact":
        same = [each for each in registry if (each.group, each.plural) == (own.group, own.plural)]
        versions += [each.version for each in same if each.version != own.version]
    for version in versions:
        if any(_meets(rule, request, version) for rule in rules):
            return version
    return None


def selects(config: Json, request: AdmissionRequest, store: Store) -> bool:
    """Whether its `namespaceSelector` and `objectSelector` select the object of a write."""
    return _selects_namespace(config.get("namespaceSelector") or {}, request, store) and _selects_object(
        config.get("objectSelector") or {}, request
    )


def _meets(rule: Json, request: AdmissionRequest, version: str) -> bool:
    resource, beneath = request.target.resource, request.target.subresource
    scope = rule.get("scope") or _ALL
    names = rule.get("resourceNames") or ()
    return (
        _has(rule.get("operations"), request.operation)
        and _has(rule.get("apiGroups"), resource.group)
        and _has(rule.get("apiVersions"), version)
        and any(_covers(each, resource.plural, beneath) for each in rule.get("resources") or ())
        # A namespace belongs to no namespace.
        and scope in (_ALL, "Namespaced" if resource.namespaced else "Cluster")
        and (not names or request.name in names)
    )


def _has(values: Iterable[str] | None, value: str) -> bool:
    found = tuple(values or ())
    return _ALL in found or value in found


def _covers(pattern: str, plural: str, subresource: str) -> bool:
    wanted, _, beneath = pattern.partition("/")
    return wanted in (_ALL, plural) and beneath in (_ALL, subresource)


def _selects_namespace(selector: Json, request: AdmissionRequest, store: Store) -> bool:
    # What belongs to no namespace is not spared by what a namespace is like.
    if not selector or not request.namespace:
        return True
    about_itself = request.resource_name == namespaces.COLLECTION and request.new is not None and request.whole
    found = request.new if about_itself else store.get(namespaces.COLLECTION, "", request.namespace)
    return found is not None and _labelled(selector, found)


def _selects_object(selector: Json, request: AdmissionRequest) -> bool:
    if not selector:
        return True
    return any(found is not None and _labelled(selector, found) for found in (request.new, request.old))


def _labelled(selector: Json, found: Json) -> bool:
    return from_label_selector(selector).matches(found["metadata"].get("labels") or {})
