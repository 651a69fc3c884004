"""The specification of a Memcached as a reconcile reads it.

The models in `api` are what decides. But pydantic costs 13 MiB of resident memory, a quarter of the whole operator, and
the API server has nearly always checked a specification before it comes here. So a strict decoder that accepts nothing
that the models refuse reads the good ones; only for one that it does not accept are the models loaded, to say in words
what is wrong. A property test holds the two together.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from memcached_operator.api.names import (
    DRAIN_SECONDS,
    DRAIN_SECONDS_MAX,
    GRACE_PERIOD_SECONDS_MAX,
    IMAGE_CHARACTERS,
    IMAGE_MAX_LENGTH,
    PERCENTAGE,
    SIZE_MAX,
    Publish,
    ServiceType,
    Workload,
    refuse_contradiction,
)
from operator_runtime import UNDECODABLE, shallow

_Count = Annotated[int, msgspec.Meta(ge=0, le=SIZE_MAX)]
_Share = Annotated[str, msgspec.Meta(pattern=rf"^{PERCENTAGE}\Z")]
_Image = Annotated[str, msgspec.Meta(min_length=1, max_length=IMAGE_MAX_LENGTH, pattern=rf"^{IMAGE_CHARACTERS}*\Z")]
# As Kubernetes types it, whatever that is.
_Passed = dict[str, Any]

# More levels than so many have no place in a pod, and at some hundreds what writes them into one has no stack left.
_LEVELS = 100


class Service(msgspec.Struct, frozen=True):
    """The Service by which clients find the servers.

    Attributes:
        type: "None" where none is wanted.
        annotations, labels: what the user wants it to bear.
    """

    type: ServiceType = "Headless"
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}


class DisruptionBudget(msgspec.Struct, frozen=True):
    """How many servers may be away at once when nodes are drained.

    Attributes:
        maxUnavailable: a number of servers, or a share of them from "0%" to "100%".
    """

    maxUnavailable: _Count | _Share = 1


class NetworkPolicy(msgspec.Struct, frozen=True, rename={"from_": "from"}):
    """Who may connect to the servers.

    Attributes:
        from_: peers as Kubernetes types them; empty for nobody.
    """

    from_: tuple[_Passed, ...]


class Pod(msgspec.Struct, frozen=True):
    """What the user wants of the pods, field by field as the specification of a pod has it; None where nothing."""

    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    nodeSelector: dict[str, str] | None = None
    tolerations: tuple[_Passed, ...] | None = None
    affinity: _Passed | None = None
    topologySpreadConstraints: tuple[_Passed, ...] | None = None
    priorityClassName: str | None = None
    imagePullSecrets: tuple[_Passed, ...] | None = None
    serviceAccountName: str | None = None
    securityContext: _Passed | None = None
    terminationGracePeriodSeconds: Annotated[int, msgspec.Meta(ge=0, le=GRACE_PERIOD_SECONDS_MAX)] | None = None


class Spec(msgspec.Struct, frozen=True):
    """A specification that can be acted on. What it holds is never changed.

    Attributes:
        size: pods that are wanted.
        image: container image, None for the operator's own choice.
        workload: the kind that runs the pods.
        service: the Service that is wanted.
        disruptionBudget: None for the operator's own choice, by the size.
        pod: what the pods have besides.
        networkPolicy: None for none.
        publish: where the list of servers is written besides the status.
        drainSeconds: how long a server runs on after it left the list.
    """

    size: _Count = 1
    image: _Image | None = None
    workload: Workload = "Deployment"
    service: Service = Service()
    disruptionBudget: DisruptionBudget | None = None
    pod: Pod = Pod()
    networkPolicy: NetworkPolicy | None = None
    publish: Publish = "None"
    drainSeconds: Annotated[int, msgspec.Meta(ge=0, le=DRAIN_SECONDS_MAX)] = DRAIN_SECONDS


_decode = msgspec.json.Decoder(Spec).decode


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
    refuse_contradiction(spec.workload, spec.service.type)
    return spec
