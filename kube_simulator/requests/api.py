"""Writes, from a target and a body to the store: the API server's own part, whoever the client is.

A write happens without a pause, so that nobody comes between a read and what follows from it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from kube_simulator.errors import (
    Cause,
    already_exists,
    bad_request,
    conflict,
    internal,
    invalid,
    invalid_parameter,
    not_found,
    not_implemented,
)
from kube_simulator.kinds import metadata, scale
from kube_simulator.kinds.strategies import strategy_of
from kube_simulator.patches import apply, managed, strategic
from kube_simulator.patches.merge import json_patch, merge_patch
from kube_simulator.requests import admission, bodies, deletion
from kube_simulator.requests.types import Caller, DeleteOptions, Patch, Target, User, WriteOptions, Written
from kube_simulator.resources import Registry
from kube_simulator.schema import structural, validation_rules
from kube_simulator.store.store import Store
from kube_simulator.values import Json, same

_PLAIN = WriteOptions()


@dataclass(frozen=True, slots=True)
class _Change:
    """A write on its way: what it is meant for, by whom, and how."""

    target: Target
    caller: Caller
    options: WriteOptions
    warnings: tuple[str, ...] = ()
    applied: bool = False
    """Server-side apply has recorded the owners of fields already."""


class Api:
    """The verbs. Every refusal is an ApiError."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        *,
        now: Callable[[], datetime],
        may_create: Callable[[Target, User], None] = lambda _target, _user: None,
    ) -> None:
        """
        Args:
            now: the present time, in UTC.
            may_create: raises where the user may not create; asked when an apply turns out to be a creation.
        """
        self.store = store
        self.registry = registry
        self._now = now
        self._may_create = may_create

    def get(self, target: Target) -> Json:
        """The object, or its scale."""
        found = self._found(target)
        if target.subresource == "scale":
            return scale.read(target.resource, found)
        return bodies.shown(target.resource, found)

    async def create(self, target: Target, body: Json, caller: Caller, options: WriteOptions = _PLAIN) -> Written:
        """POST: a new object under its own name, or one made from `generateName`."""
        if target.subresource:
            raise not_implemented(f"a POST to the subresource {target.subresource} of {target.resource.full_name}")
        body, warnings = bodies.fitted(bodies.identified(body, target), target, options)
        return self._create(_Change(target, caller, options, warnings), bodies.stored(target.resource, body))

    async def update(self, target: Target, body: Json, caller: Caller, options: WriteOptions = _PLAIN) -> Written:
        """PUT: the object as a whole, guarded by its resourceVersion if it has one."""
        resource = target.resource
        if target.subresource == "scale":
            return self._update_scale(target, lambda _scale: body, caller, options)
        body, warnings = bodies.fitted(bodies.identified(body, target), target, options)
        body, change = bodies.stored(resource, body), _Change(target, caller, options, warnings)
        old = self._found(target)
        bodies.check_update(target, body, old)
        return self._replace(change, old, body)

    async def patch(self, target: Target, patch: Patch, caller: Caller, options: WriteOptions = _PLAIN) -> Written:
        """PATCH in each of its forms. Other writers are no conflict, unless the patch names a version."""
        if patch.kind == "apply" and not options.field_manager:
            message = "Required value: is required for apply patch"
            raise invalid_parameter("PatchOptions", [Cause("FieldValueRequired", message, "fieldManager")])
        if target.subresource == "scale":
            return self._update_scale(target, lambda found: self._patched(target, patch, found), caller, options)
        if patch.kind == "apply":
            return self._apply(_Change(target, caller, options, applied=True), patch.body)
        resource, old = target.resource, self._found(target)
        patched = self._patched(target, patch, bodies.shown(resource, old))
        body, warnings = bodies.fitted(bodies.identified(patched, target), target, options, patch=True)
        body = bodies.stored(resource, body)
        version, uid = bodies.claims(body)
        bodies.check_version(target, version, old)
        if not target.subresource:
            bodies.check_uid(target, uid, old)
        return self._replace(_Change(target, caller, options, warnings), old, body)

    async def delete(self, target: Target, options: DeleteOptions) -> tuple[Json, bool]:
        """Delete an object, and return it, and False; or the details of an object that is gone, and True."""
        resource, found = target.resource, self._found(target)
        admission.admit_deletion(target)
        outcome = deletion.outcome(resource, found, options, self._now())
        if not options.dry_run:
            if outcome is None:
                self.store.delete(resource.collection, target.namespace, target.name)
            elif outcome is not found:
                outcome = self.store.put(resource.collection, outcome)
        if outcome is None:
            group = {"group": resource.group} if resource.group else {}
            return {"name": target.name, **group, "kind": resource.plural, "uid": found["metadata"]["uid"]}, True
        return bodies.shown(resource, outcome), False

    def _create(self, change: _Change, body: Json) -> Written:
        target, resource = change.target, change.target.resource
        strategy = strategy_of(resource)
        new = strategy.default(strategy.prepare_create(self._born(body)))
        named = replace(target, name=new["metadata"]["name"])
        new = self._finished(change, named, new, None)
        admission.admit_creation(self.store, named, new)
        if not change.options.dry_run and new["metadata"].get("resourceVersion") not in (None, "", "0"):
            raise internal("resourceVersion should not be set on objects to be created")
        if self._live(named) is not None:
            raise already_exists(resource, named.name)
        if not change.options.dry_run:
            new = self.store.put(resource.collection, new)
        return Written(bodies.shown(resource, new), True, change.warnings)

    def _patched(self, target: Target, patch: Patch, found: Json) -> Json:
        resource = target.resource
        if patch.kind == "json":
            return json_patch(found, patch.body)
        if patch.kind == "apply":
            raise not_implemented(f"an apply to the subresource {target.subresource} of {resource.full_name}")
        # A scale has nothing that a strategic merge would treat otherwise.
        if patch.kind == "merge" or target.subresource == "scale":
            return merge_patch(found, patch.body)
        return strategic.strategic_merge(found, patch.body, resource.schema)

    def _apply(self, change: _Change, body: Json) -> Written:
        target = change.target
        resource, old = target.resource, self._live(target)
        if not body.get("apiVersion") or not body.get("kind"):
            raise bad_request("invalid object type: an applied object needs apiVersion and kind")
        applied = bodies.identified(body, target)
        version, uid = bodies.claims(applied)
        if old is None and target.subresource:
            raise not_found(resource, target.name)
        if old is None and uid:
            raise conflict(resource, target.name, f"uid mismatch: there is no object with the uid {uid}")
        if version and not version.isdecimal():
            raise internal(f"resourceVersion is invalid: {version}")
        merged = apply.server_side_apply(
            None if old is None else bodies.shown(resource, old),
            applied,
            resource=resource,
            manager=change.options.field_manager,
            force=change.options.force,
            subresource=target.subresource,
            now=self._time(),
        )
        if old is None:
            self._may_create(target, change.caller.user)
            return self._create(change, bodies.stored(resource, bodies.without(merged, "resourceVersion", "uid")))
        if uid:
            bodies.check_uid(target, uid, old)
        if version != "0":
            bodies.check_version(target, version, old)
        return self._replace(change, old, bodies.stored(resource, merged))

    def _update_scale(
        self, target: Target, change: Callable[[Json], Json], caller: Caller, options: WriteOptions
    ) -> Written:
        old = self._found(target)
        desired = change(scale.read(target.resource, old))
        new = scale.written(target.resource, old, desired)
        bodies.check_version(target, bodies.claims(desired)[0], old)
        written = self._replace(_Change(target, caller, options), old, new)
        return Written(scale.read(target.resource, written.object))

    def _replace(self, change: _Change, old: Json, body: Json) -> Written:
        target, resource = change.target, change.target.resource
        strategy = strategy_of(resource)
        body = {**body, "metadata": bodies.kept(body["metadata"], old)}
        new = strategy.default(strategy.prepare_update(body, old, target.subresource))
        new = self._finished(change, target, new, old)
        if same(new, old):
            new = old
        elif not change.options.dry_run:
            if deletion.may_go(resource, new):
                new = self.store.delete(resource.collection, target.namespace, target.name, new)
            else:
                new = self.store.put(resource.collection, new)
        return Written(bodies.shown(resource, new), warnings=change.warnings)

    def _finished(self, change: _Change, target: Target, new: Json, old: Json | None) -> Json:
        """The object with its owners, and with what the server fills in after it has recorded them.

        Only what is valid can be recorded: to Python, true is 1.
        """
        complete, resource = strategy_of(target.resource).complete, target.resource
        self._validate(target, complete(new, old), old)
        if not change.applied:
            manager = change.options.field_manager or change.caller.agent or "unknown"
            entry = managed.Entry(manager, "Update", resource.api_version, target.subresource)
            new = managed.after_update(old, new, entry, resource.schema, self._time())
        elif old is not None:
            new = managed.unless_only_times(old, new)
        return complete(new, old)

    def _validate(self, target: Target, new: Json, old: Json | None) -> None:
        resource = target.resource
        causes = metadata.metadata_problems(resource, new, old)
        if resource.custom:
            causes += structural.validate(resource.schema, new)
            causes += scale.problems(resource, new, target.subresource)
            causes += validation_rules.rule_problems(resource.schema, new, old, causes)
        causes += strategy_of(resource).validate(new, old)
        if causes:
            raise invalid(resource, new["metadata"].get("name") or "", causes)

    def _born(self, body: Json) -> Json:
        """Add what the server alone may write into a new object."""
        meta = bodies.without(body, "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")["metadata"]
        name = meta.get("name") or metadata.generated_name(meta.get("generateName") or "")
        stamped = {**meta, "name": name, "uid": str(uuid.uuid4()), "creationTimestamp": self._time()}
        return {**body, "metadata": stamped}

    def _live(self, target: Target) -> Json | None:
        return self.store.get(target.resource.collection, target.namespace, target.name)

    def _found(self, target: Target) -> Json:
        found = self._live(target)
        if found is None:
            raise not_found(target.resource, target.name)
        return found

    def _time(self) -> str:
        return self._now().strftime("%Y-%m-%dT%H:%M:%SZ")
