"""Pure: how what stands beside the servers is held in the caches, compared, and put right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from memcached_operator.memcached.wanted.budget import BudgetManifest, check_selector
from memcached_operator.memcached.wanted.network_policy import PolicyManifest
from memcached_operator.memcached.wanted.server_list import PublicationManifest
from memcached_operator.memcached.wanted.service import HEADLESS, ServiceManifest
from memcached_operator.memcached.wanted.shape import OwnedRecord, Shape
from operator_runtime import Difference, differences


def _our_service(live: ServiceManifest) -> ServiceManifest:
    spec = live.spec
    return msgspec.structs.replace(
        live,
        spec=msgspec.structs.replace(
            spec,
            clusterIP=HEADLESS if spec.clusterIP == HEADLESS else None,
            publishNotReadyAddresses=bool(spec.publishNotReadyAddresses),  # the API server leaves out what is false
        ),
    )


SERVICE: Final = Shape(ServiceManifest, _our_service)
# Neither can a Service get an address that has none, nor lose it.
SERVICE_RULES: Final = SERVICE.rules(fixed=("spec.clusterIP",), replace="Background")


class BudgetRecord(OwnedRecord, frozen=True, gc=False, kw_only=True):
    """A PodDisruptionBudget.

    Attributes:
        selector: JSON of the selector of one that is no Memcached's.
    """

    selector: bytes = b""


class _Spec(msgspec.Struct):
    selector: msgspec.Raw = msgspec.Raw()


class _Object(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


_decode_object = msgspec.json.Decoder(_Object).decode


def budget_record(raw: msgspec.Raw | bytes) -> BudgetRecord:
    """A record from a PodDisruptionBudget's JSON."""
    record = BUDGET.record(raw)
    fields = {field: getattr(record, field) for field in record.__struct_fields__}
    # Of ours it stands in the form.
    selector = b"" if record.form else bytes(_decode_object(raw).spec.selector)
    if selector:
        check_selector(selector)  # here, and not where Memcacheds are looked at: it would fail all of the namespace
    return BudgetRecord(**fields, selector=selector)


BUDGET: Final = Shape(BudgetManifest)
BUDGET_RULES: Final = BUDGET.rules()


def _our_policy(live: PolicyManifest) -> PolicyManifest:
    # The API server leaves out an empty list; the wanted form says that there are no rules.
    return msgspec.structs.replace(live, spec=msgspec.structs.replace(live.spec, ingress=live.spec.ingress or ()))


NETWORK_POLICY: Final = Shape(PolicyManifest, _our_policy)
NETWORK_POLICY_RULES: Final = NETWORK_POLICY.rules()


_IMMUTABLE: Final = "immutable"


def _in_the_way(wanted: PublicationManifest, live: PublicationManifest) -> Sequence[Difference]:
    """A list that nobody can change is in the way of another one. As long as it is right it stays."""
    right = not any(differences(wanted.data, live.data))
    return () if right or not live.immutable else [Difference((_IMMUTABLE,), None, True)]


PUBLICATION: Final = Shape(PublicationManifest, excess=_in_the_way)
PUBLICATION_RULES: Final = PUBLICATION.rules(fixed=(_IMMUTABLE,), replace="Background")
