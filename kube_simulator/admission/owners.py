"""Who may say that an object belongs to another (plugin OwnerReferencesPermissionEnforcement, off by default).

It takes the permission to `update` an owner's finalizers to make the owner wait for an object (`blockOwnerDeletion`),
and the permission to delete an existing object to change its owners.

Differs from Kubernetes: an owner of a built-in kind that the simulator does not serve counts as one of no known kind.
"""

from __future__ import annotations

from kube_simulator.access.rbac import Authorizer
from kube_simulator.access.rules import Attributes, of_target
from kube_simulator.admission.request import AdmissionRequest
from kube_simulator.errors import forbidden
from kube_simulator.resources import Registry
from kube_simulator.values import Json

# The end of the real server's words: the authorizer's reason and error, of which RBAC has neither.
_NO_REASON = ", <nil>"


def admit(authorizer: Authorizer, registry: Registry, request: AdmissionRequest) -> None:
    """Raises ApiError 403."""
    if request.new is None:
        return
    wanted, known = _references(request.new), _references(request.old)
    if wanted == known:
        return
    target, user = request.target, request.caller.user
    if request.old is not None and not authorizer.decide(user, of_target("delete", target)).allowed:
        why = f"cannot set an ownerRef on a resource you can't delete: {_NO_REASON}"
        raise forbidden(target.resource, request.name, why)
    blocked_before = [each["uid"] for each in known if each.get("blockOwnerDeletion")]
    for each in wanted:
        if not each.get("blockOwnerDeletion") or each["uid"] in blocked_before:
            continue
        api_version, kind = each["apiVersion"], each["kind"]
        owner = registry.of_kind(api_version, kind)
        if owner is None:
            why = (
                "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion "
                f'{api_version} Kind {kind}: no matches for kind "{kind}" in version "{api_version}"'
            )
            raise forbidden(target.resource, request.name, why)
        namespace = target.namespace if owner.namespaced else ""
        asked = Attributes("update", owner.group, owner.plural, "finalizers", namespace, each["name"])
        if not authorizer.decide(user, asked).allowed:
            why = (
                "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: "
                f"{_NO_REASON}"
            )
            raise forbidden(target.resource, request.name, why)


def _references(found: Json | None) -> list[Json]:
    return [] if found is None else found["metadata"].get("ownerReferences") or []
