"""The specification of a Memcached as a reconcile reads it.

The models in `api` are what decides. But pydantic costs 13 MiB of resident memory, a quarter of the whole operator, and
the API server has nearly always checked a specification before it comes here. So a strict decoder that accepts nothing
that the models refuse reads the good ones; only for one that it does not accept are the models loaded, to say in words
what is wrong. A property test holds the two together.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Final

import msgspec

from memcached_operator.api.names import (
    DRAIN_SECONDS,
    DRAIN_SECONDS_MAX,
    EXTRA_ARG_MAX_LENGTH,
    EXTRA_ARGS_MAX,
    IMAGE_CHARACTERS,
    IMAGE_MAX_LENGTH,
    MAX_CONNECTIONS,
    MAX_CONNECTIONS_MAX,
    MAX_ITEM_SIZE,
    MAX_ITEM_SIZE_PATTERN,
    MEMORY,
    MEMORY_PATTERN,
    PAUSE_SECONDS,
    PAUSE_SECONDS_MAX,
    PERCENTAGE,
    QUANTITY,
    QUANTITY_MAX,
    SECRET_NAME,
    SECRET_NAME_MAX_LENGTH,
    SIZE_MAX,
    THREADS,
    THREADS_MAX,
    ClientAuth,
    Publish,
    Reload,
    ServiceType,
    Workload,
)
from memcached_operator.api.rules import Together, refuse_contradictions
from operator_runtime import UNDECODABLE, shallow

_Count = Annotated[int, msgspec.Meta(ge=0, le=SIZE_MAX)]
_Share = Annotated[str, msgspec.Meta(pattern=rf"^{PERCENTAGE}\Z")]
_Image = Annotated[str, msgspec.Meta(min_length=1, max_length=IMAGE_MAX_LENGTH, pattern=rf"^{IMAGE_CHARACTERS}*\Z")]
_Memory = Annotated[str, msgspec.Meta(pattern=rf"^({MEMORY_PATTERN})\Z")]
_ItemSize = Annotated[str, msgspec.Meta(pattern=rf"^({MAX_ITEM_SIZE_PATTERN})\Z")]
_Argument = Annotated[str, msgspec.Meta(min_length=1, max_length=EXTRA_ARG_MAX_LENGTH)]
_Amount = Annotated[int, msgspec.Meta(ge=0, le=QUANTITY_MAX)]
_Quantity = Annotated[str, msgspec.Meta(pattern=rf"^({QUANTITY})\Z")]
_SecretName = Annotated[str, msgspec.Meta(max_length=SECRET_NAME_MAX_LENGTH, pattern=rf"^{SECRET_NAME}\Z")]
# As Kubernetes types it, whatever that is.
_Passed = dict[str, Any]

# More levels than so many have no place in a pod, and at some hundreds what writes them into one has no stack left.
_LEVELS = 100
# A team's Memcacheds are mostly written alike. 200 different specifications take some 300 KiB.
_REMEMBERED: Final = 200


class Service(msgspec.Struct, frozen=True):
    """The Service by which clients find the servers."""

    type: ServiceType = "Headless"
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}


class DisruptionBudget(msgspec.Struct, frozen=True):
    """How many servers may be away at once when nodes are drained."""

    maxUnavailable: _Count | _Share = 1


class NetworkPolicy(msgspec.Struct, frozen=True):
    """Who may connect to the servers."""

    allowFrom: tuple[_Passed, ...]


class PodMetadata(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the user wants the pods to bear."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class PodTemplate(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the user wants of the pods besides what the operator makes."""

    metadata: PodMetadata = PodMetadata()
    spec: _Passed = {}

    def given(self) -> dict[str, Any]:
        """All of it as JSON has it, {} where it says nothing."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        if account := self.spec.get("serviceAccountName") or self.spec.get("serviceAccount"):
            # The API server fills in the field's other name, and would put back an account that is taken out again.
            found["spec"] = self.spec | {"serviceAccountName": account, "serviceAccount": account}
        return found


class Resources(msgspec.Struct, frozen=True):
    """What the user wants of each server's resources, by their names; what is not named follows from the settings."""

    requests: dict[str, _Amount | _Quantity] = {}
    limits: dict[str, _Amount | _Quantity] = {}


class Rollout(msgspec.Struct, frozen=True):
    """How servers are replaced when their template changes.

    Attributes:
        maxUnavailable: of a Deployment, how many may be missing, or a share of them; None where it is left out, which
            is 1. A StatefulSet has None.
        maxSurge: likewise, how many there may be above the size; None is 0.
    """

    pauseSeconds: Annotated[int, msgspec.Meta(ge=0, le=PAUSE_SECONDS_MAX)] = PAUSE_SECONDS
    paused: bool = False
    maxUnavailable: _Count | _Share | None = None
    maxSurge: _Count | _Share | None = None


class Tls(msgspec.Struct, frozen=True):
    """How servers speak TLS."""

    secretName: _SecretName
    clientAuth: ClientAuth = "None"
    reload: Reload = "Live"


class Auth(msgspec.Struct, frozen=True):
    """Passwords for the text protocol."""

    secretName: _SecretName


class Spec(msgspec.Struct, frozen=True):
    """A specification that can be acted on, with the fields that `api.v1alpha1` describes; never changed."""

    size: _Count = 1
    image: _Image | None = None
    memory: _Memory = MEMORY
    maxConnections: Annotated[int, msgspec.Meta(ge=1, le=MAX_CONNECTIONS_MAX)] = MAX_CONNECTIONS
    threads: Annotated[int, msgspec.Meta(ge=1, le=THREADS_MAX)] = THREADS
    maxItemSize: _ItemSize = MAX_ITEM_SIZE
    extraArgs: Annotated[tuple[_Argument, ...], msgspec.Meta(max_length=EXTRA_ARGS_MAX)] = ()
    resources: Resources = Resources()
    rollout: Rollout = Rollout()
    workload: Workload = "Deployment"
    service: Service = Service()
    disruptionBudget: DisruptionBudget | None = None
    podTemplate: PodTemplate = PodTemplate()
    networkPolicy: NetworkPolicy | None = None
    tls: Tls | None = None
    auth: Auth | None = None
    publish: Publish | None = None
    drainSeconds: Annotated[int, msgspec.Meta(ge=0, le=DRAIN_SECONDS_MAX)] = DRAIN_SECONDS


_decode = msgspec.json.Decoder(Spec).decode


@lru_cache(_REMEMBERED)
def read_spec(raw: bytes) -> Spec:
    """Read the JSON of `spec`, b"" where there is none.

    Raises:
        InvalidSpec: a field has the wrong type or is out of its limits, or two contradict each other; names each, what
            it holds, and the remedy.
    """
    if not raw:
        return Spec()
    if raw.count(b"{") + raw.count(b"[") > _LEVELS:
        raw = shallow(raw, _LEVELS)
    try:
        spec = _decode(raw)
    except UNDECODABLE:
        from memcached_operator.api.v1alpha1 import validate_spec

        # To the models null is as good as no field.
        return msgspec.convert(validate_spec(raw).model_dump(by_alias=True, exclude_none=True), Spec)
    refuse_contradictions(_together(spec))
    return spec


def _together(spec: Spec) -> Together:
    return Together(
        workload=spec.workload,
        service_type=spec.service.type,
        memory=spec.memory,
        max_connections=spec.maxConnections,
        threads=spec.threads,
        max_item_size=spec.maxItemSize,
        extra_args=spec.extraArgs,
        requests=spec.resources.requests,
        limits=spec.resources.limits,
        max_unavailable=spec.rollout.maxUnavailable,
        max_surge=spec.rollout.maxSurge,
        tls=spec.tls is not None,
        auth=spec.auth is not None,
        pod_template=spec.podTemplate.given(),
    )
