"""Whose move it is when a write is refused, or pods are."""

from __future__ import annotations

import pytest

from memcached_operator.api.status import Reason
from memcached_operator.core.objects.refusal_reasons import pods_refused, refusal_reason, refused
from operator_runtime import Forbidden, Invalid, Refused, Reverted, Unwatched

POD = 'pods "sessions-1" is forbidden: '
MESSAGES = {
    Reason.QUOTA_EXCEEDED: [
        f"{POD}exceeded quota: few, requested: limits.memory=146Mi, used: limits.memory=0, limited",
        f"{POD}failed quota: few: must specify limits.cpu for: memcached",
        f"{POD}status unknown for quota: few, resources: pods",
        f"{POD}insufficient quota to match these scopes: [{{PriorityClass In [high]}}]",
        f"create Pod sessions-1 in StatefulSet sessions failed error: {POD}exceeded quota: few, requested: pods=1",
    ],
    Reason.DENIED_BY_POLICY: [
        'admission webhook "validate.kyverno.svc-fail" denied the request: no',
        """deployments.apps "a" is forbidden: ValidatingAdmissionPolicy 'no' with binding 'b' denied request: no""",
        """deployments.apps "sessions" is forbidden: policy 'no' with binding 'b' denied request: no""",
        f'create Pod sessions-1 in StatefulSet sessions failed error: admission webhook "x" denied the request: {POD}',
        'Internal error occurred: failed calling webhook "x": failed to call webhook: Post "https://x": refused',
        f'{POD}violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false',
        f"{POD}maximum memory usage per Container is 100Mi, but limit is 146Mi",
        f"{POD}maximum cpu usage per Pod is 1.  No limit is specified",
        'pods "exceeded-quota" is forbidden: memory max limit to request ratio per Container is 1, but',
        f"{POD}pod node label selector conflicts with its namespace node label selector",
        f"{POD}pod tolerations (possibly merged with defaults) conflict with its namespace whitelist",
        f"{POD}affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but only key host is allowed",
        f"create Pod sessions-1 in StatefulSet sessions failed error: {POD}pod node label selector conflicts with its",
        """admission webhook "x" denied the request: pods is forbidden: User "y" cannot patch resource "pods" in""",
        'pods "a" is forbidden: the User "y" cannot be served: User "z" cannot patch resource "pods" in',
        "",
        f'{POD}unable to validate against any security context constraint: [provider "anyuid": Forbidden: not usable]',
    ],
    Reason.INVALID_SPEC: [
        'Pod "sessions-1" is invalid: spec.containers[0].resources.requests: Invalid value: "1": must be less than or',
        f"{POD}no PriorityClass with name high was found",
        f'{POD}error looking up service account shop/cache: serviceaccount "cache" not found',
    ],
    Reason.FORBIDDEN: [
        'deployments.apps is forbidden: User "x" cannot patch resource "deployments" in API group "apps"',
        'resourcequotas "few" is forbidden: User "x" cannot get resource "resourcequotas"',
        'memcacheds.cache.example.com "a" is forbidden: User "system:serviceaccount:a:b" cannot patch resource '
        '"memcacheds/status" in API group "cache.example.com" in the namespace "a": denied the request: no opinion',
        'forbidden is forbidden: User "x \\"y\\"" cannot get path "/version"',
        'Failed to create new replica set "a-7cc": rs.apps is forbidden: User "x" cannot create resource "rs',
        'create Pod a-1 in StatefulSet a failed error: pods is forbidden: User "x" cannot create resource "pods" in',
        'Create Pod a-1 in StatefulSet a failed error: pods is forbidden: User "x" cannot create resource "pods" in',
        f"{POD}cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: ",
        'deployments.apps "cache" is forbidden: cannot set an ownerRef on a resource you can\'t delete: , <nil>',
    ],
}


NO_RIGHT = MESSAGES[Reason.FORBIDDEN][0]


@pytest.mark.parametrize(("reason", "message"), [(each, text) for each, texts in MESSAGES.items() for text in texts])
def test_the_reason_follows_from_the_api_servers_words(reason: Reason, message: str) -> None:
    assert refusal_reason(message) is reason


@pytest.mark.parametrize(
    ("error", "reason", "message"),
    [
        (Invalid(422, message="spec: bad"), Reason.INVALID_SPEC, "The API server refused the Service: spec: bad"),
        (Forbidden(422, message='admission webhook "x" denied the request: no'), Reason.DENIED_BY_POLICY, None),
        (Forbidden(403, message=NO_RIGHT), Reason.FORBIDDEN, NO_RIGHT),
        (Forbidden(403, message="no"), Reason.DENIED_BY_POLICY, "A policy denied the Service: no"),
        (Unwatched("cannot list"), Reason.FORBIDDEN, "cannot list"),
        (Reverted("Something reverts it."), Reason.REVERTED, "Something reverts it."),
        (Refused("The field cannot be changed."), Reason.IMMUTABLE, "The field cannot be changed."),
    ],
)
def test_each_refusal_has_the_reason_that_says_whose_move_it_is(
    error: Forbidden | Invalid | Refused, reason: Reason, message: str | None
) -> None:
    denied = 'A policy denied the Service: admission webhook "x" denied the request: no'
    assert refused("Service", error) == (reason, denied if message is None else message)


SIDECAR = "spec.podTemplate.spec.initContainers[reloader].resources"
FIELDS = [
    ("failed quota: q: must specify limits.cpu for: memcached,reloader", "spec.resources.limits.cpu"),
    ("failed quota: q: must specify limits.cpu for: reloader", "spec.resources.limits.cpu"),
    (
        "failed quota: q: must specify limits.cpu for: exporter,memcached; requests.cpu for: exporter",
        "spec.podTemplate.spec.containers[exporter].resources.limits.cpu, spec.resources.limits.cpu, "
        "spec.podTemplate.spec.containers[exporter].resources.requests.cpu",
    ),
    ("failed quota: q: must specify cpu for: memcached", "spec.resources.requests.cpu"),
    (
        "minimum cpu usage per Container is 100m, but request is 50m",
        f"spec.resources.requests.cpu, {SIDECAR}.requests.cpu",
    ),
    (
        "[maximum memory usage per Container is 1Gi, but limit is 2Gi, "
        "maximum cpu usage per Container is 1.  No limit is specified]",
        f"spec.resources.limits.memory, {SIDECAR}.limits.memory, spec.resources.limits.cpu, {SIDECAR}.limits.cpu",
    ),
    (
        "cpu max limit to request ratio per Container is 2, but provided ratio is 20.000000",
        f"spec.resources.limits.cpu, {SIDECAR}.limits.cpu, spec.resources.requests.cpu, {SIDECAR}.requests.cpu",
    ),
]


@pytest.mark.parametrize(("message", "fields"), FIELDS)
def test_what_pods_lack_is_told_by_the_fields_that_give_it(message: str, fields: str) -> None:
    found = pods_refused(f"{POD}{message}", sidecar=True)
    assert found.message == f"{POD}{message}. Set {fields}."
    assert found.reason is refusal_reason(found.message)
    alone = pods_refused(f"{POD}{message}", sidecar=False).message
    assert alone.endswith(f" Set {', '.join(each for each in fields.split(', ') if not each.startswith(SIDECAR))}.")


@pytest.mark.parametrize("message", [MESSAGES[Reason.QUOTA_EXCEEDED][0], *MESSAGES[Reason.INVALID_SPEC]])
def test_other_refusals_of_pods_are_told_in_the_api_servers_words_alone(message: str) -> None:
    assert pods_refused(message, sidecar=True) == (refusal_reason(message), message, False)
