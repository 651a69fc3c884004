"""Pure: the next write of an owned object, from the desired and the live one. `ensure_object.Keeper` sends it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from operator_runtime.client.api_client import Propagation
from operator_runtime.client.resources import Resource
from operator_runtime.objects.api_objects import PlainObject
from operator_runtime.owned.compare import Difference
from operator_runtime.owned.ensure_rules import EnsureResult, NotOwned, Ownable, Refused, Rules
from operator_runtime.owned.owners import Owner

# What cannot change of an object that is there, of the kinds of these groups: Deployments, StatefulSets, Jobs.
_FIXED, _FIXED_IN = "spec.selector", ("apps", "batch")
_OWNERS = ("metadata", "ownerReferences")
_SINCE, _NEVER = "lastTransitionTime", "1970-01-01T00:00:00Z"

W = TypeVar("W")
P = TypeVar("P", bound=Ownable)


class LastWrite(NamedTuple):
    """Last write of an object for the owner of this uid, while no status reports it.

    A create that is not `answered` may have been done all the same. `deleted_uid` is that of an object that was
    deleted, "" where it was created; `fields` could not be changed of the deleted one, which is to be replaced.
    """

    owner_uid: str
    answered: bool = True
    deleted_uid: str = ""
    fields: Sequence[Difference] = ()


@dataclass(frozen=True, slots=True)
class Create:
    """Creation of an object that does not exist.

    `drift`: another client has deleted it. `replaces`: it was deleted to be replaced, or it was to go before, as its
    `fields` could not be changed. `owner_in_doubt`: the owner may be gone, too, which the watch has not shown.
    """

    drift: bool
    replaces: bool
    owner_in_doubt: bool
    fields: Sequence[Difference]


@dataclass(frozen=True, slots=True)
class Update:
    """Update of all fields in `found` by one patch, of which those in `reported` are worth a word.

    `disowned`: it is to be owned again, as after a deletion of its owner with --cascade=orphan.
    """

    found: tuple[Difference, ...]
    reported: tuple[Difference, ...]
    disowned: bool


@dataclass(frozen=True, slots=True)
class Replace:
    """Deletion of an object whose `fields` cannot be changed, to create it again; `why` reports it."""

    fields: Sequence[Difference]
    propagation: Propagation
    why: str


def decide_creation(last: LastWrite | None, *, seen: bool) -> Create:
    """Decide how a missing object is created; `seen`: the owner's status reports such an object."""
    replaces = last is not None and bool(last.deleted_uid)
    drift = not replaces and (seen or (last is not None and last.answered))
    return Create(drift, replaces, seen or last is not None, () if last is None else last.fields)


@dataclass(frozen=True, slots=True)
class Decider(Generic[W, P]):
    """Decides about the objects of one kind (`resource`), for owners of another."""

    resource: Resource
    owners: Resource
    rules: Rules[W, P]

    def decide(self, owner: Owner, desired: W, live: P) -> EnsureResult[P] | Refused | Replace | Update | None:
        """Decide what brings an object that exists to its desired state; None where it is as desired.

        A result says what is waited for; a refusal, which is to be raised, has the remedy.
        """
        if (claimed := self.claim(owner, live)) is not None:
            return claimed
        kind = self.resource.kind
        if live.deleting:
            return EnsureResult(None, f"The {kind} is being deleted, and is recreated then.")
        found = tuple(self.rules.differences(desired, live))
        if not found:
            return None
        if fixed := [each for each in found if any(map(each.is_in, self._fixed))]:
            if self.rules.replace is None:
                remedy = f"Delete the {kind}: it is then recreated."
                return Refused(f"Kubernetes does not allow changes to the {kind}: {fixed[0]}. {remedy}")
            why = f"The {kind} is being replaced, as Kubernetes does not allow this change: {fixed[0]}."
            return Replace(fixed, self.rules.replace, why)
        reported = tuple(each for each in found if each.path not in self.rules.derived) or found
        return Update(found, reported, any(each.steps[:2] == _OWNERS for each in found))

    def decide_removal(self, owner: Owner, live: P | None) -> EnsureResult[P] | None:
        """The result where there is none of the owner's, or one that goes already; None where it is to be deleted."""
        if live is None or not self.rules.is_owned(live, owner.uid):
            return EnsureResult(None)
        return EnsureResult(None, self.going) if live.deleting else None

    @property
    def going(self) -> str:
        return f"The {self.resource.kind} is being deleted."

    def claim(self, owner: Owner, live: P) -> EnsureResult[P] | NotOwned | None:
        """Return why an object is not this owner's, None where it is; also for the answer to a write.

        Its type may decode nothing of a foreign object, so only its owner is read.
        """
        if self.rules.is_owned(live, owner.uid):
            return None
        kind, owners, holder = self.resource.kind, self.owners, live.controller
        predecessor = (owners.api_version, owners.kind, owner.name)
        if holder and (holder.api_version, holder.kind, holder.name) == predecessor:
            # The garbage collector has not come by yet. Its owner is gone for good: uids are never used twice.
            why = f"The {kind} of a deleted {holder.kind} of the same name is still there; waiting for it to go."
            return EnsureResult(None, why)
        whose = f"belongs to {holder.kind} {holder.name}" if holder else "has no owner"
        remedy = f"Rename this {owners.kind} or delete that {kind}"
        if holder is None and self.rules.handover:
            remedy += f"; to hand it over, {self.rules.handover}"
        where = f" in namespace {live.namespace}" if live.namespace != owner.namespace else ""
        return NotOwned(f"A {kind} named {live.name} exists{where} and {whose}: it is not changed. {remedy}.")

    def reverted(self, owner: Owner, desired: W, answer: P, update: Update) -> str:
        """Describe what reverts an update, where its answer shows the object as it was before; "" for nothing."""
        if not self.rules.is_owned(answer, owner.uid) or tuple(self.rules.differences(desired, answer)) != update.found:
            return ""
        fields = "; ".join(map(str, update.reported))
        kind = self.resource.kind
        client = "Another client, such as a mutating admission policy,"
        return f"{client} reverts the operator's changes of the {kind}: {fields}."

    @property
    def _fixed(self) -> tuple[str, ...]:
        return self.rules.fixed + ((_FIXED,) if self.resource.group in _FIXED_IN else ())


def has_status(owner: object) -> bool:
    """Report whether something was written into the status of an object, as far as that can be known.

    Conditions that have been so since 1970 are those that a CustomResourceDefinition fills in until the first write.
    """
    status = (owner.body.get("status") or {}) if isinstance(owner, PlainObject) else getattr(owner, "status", None)
    if status is None:
        return True
    if (conditions := _field(status, "conditions")) and all(_field(each, _SINCE) == _NEVER for each in conditions):
        return False
    return bool(status != type(status)())


def _field(part: Any, name: str) -> Any:
    return part.get(name) if isinstance(part, dict) else getattr(part, name, None)
