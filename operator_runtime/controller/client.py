"""The API server for reconcilers: live reads and writes of one object at a time, typed by its `Kind`.

Caches are read through stores, without waiting. What is written inside a reconcile is awaited by its controller
(`cache.own_writes`): the key is not reconciled again before the cache has shown the write. Every write names the field
manager, under which server-side apply and `kubectl --show-managed-fields` keep whose fields are whose.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar, overload

from operator_runtime.cache.own_writes import OwnWrites
from operator_runtime.cache.store import ObjectKey, Store, key_of
from operator_runtime.client.api_client import APPLY_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, ApiClient, Propagation
from operator_runtime.client.errors import Conflict, NotFound
from operator_runtime.client.frames import MAX_PAGE_BYTES, PAGE_SIZE, object_of, page_of
from operator_runtime.client.resources import has_subresource
from operator_runtime.client.response_identity import ExpectedList
from operator_runtime.client.watch import Record
from operator_runtime.controller.controller import current_reconcile
from operator_runtime.objects.api_objects import Object, PlainObject, parts_of
from operator_runtime.objects.bodies import (
    Body,
    checked_key,
    identity_of,
    merge_diff,
    patch_body,
    plain_status,
    whole_body,
    without_nones,
)
from operator_runtime.objects.kinds import Kind
from operator_runtime.objects.managed_fields import Writers

R = TypeVar("R", bound=Record)
S = TypeVar("S")
T = TypeVar("T")


class Client:
    """Gets, lists and writes objects as one field manager, which names the operator in managedFields.

    Each method raises a `KubeError` where the API server refuses or cannot be reached: let it pass, and the controller
    tries again; and a ValueError or TypeError, before anything is sent, where the request makes no sense.
    """

    def __init__(
        self,
        api: ApiClient,
        *,
        field_manager: str,
        own_writes_of: Callable[[str], OwnWrites | None] = lambda _: None,
        stores_of: Callable[[Kind[Any]], Iterable[Store[Any]]] = lambda _: (),
    ) -> None:
        """
        Args:
            own_writes_of: what the controller of that name waits for; None where it waits for nothing.
            stores_of: the caches of a kind, into which the answers to updates go.
        """
        self.field_manager = field_manager
        self._api = api
        self._own_writes_of = own_writes_of
        self._stores_of = stores_of

    async def get(self, kind: Kind[R], key: ObjectKey) -> R:
        """One object, live; NotFound where there is none."""
        answer = await self._api.get(kind.resource, checked_key(kind.resource, key), key.name)
        return object_of(kind.decode, answer)

    async def list(self, kind: Kind[R], namespace: str | None = None, labels: str = "", *, fields: str = "") -> list[R]:
        """List all objects of a kind, live, page by page, so that no answer is larger than it may be.

        Args:
            namespace: None for all namespaces, and for a cluster-scoped kind.
            labels: label selector, as in the API's query: `app=shell,tier!=test`.
            fields: field selector, likewise: `involvedObject.uid=…`. Which fields can be selected is the kind's matter.

        Raises:
            KubeError: a page did not come, as its pages took longer than the server keeps a version, or is too long.
            ValueError: the kind has no namespaces, or the name is empty.
        """
        resource = kind.resource
        if namespace is not None and not (namespace and resource.namespaced):
            raise ValueError(
                f"namespace is {namespace!r} for a list of {resource.plural}: "
                "name a namespace, or give None for all of them and for cluster-scoped kinds"
            )
        selectors = {"labelSelector": labels, "fieldSelector": fields}
        query = {name: text for name, text in selectors.items() if text} | {"limit": str(PAGE_SIZE)}
        path, expected = resource.path(namespace), ExpectedList(resource)
        found: list[R] = []
        while True:
            answer = await self._api.request(
                "GET", path, query=query, gzip=True, max_bytes=MAX_PAGE_BYTES, expected=expected
            )
            page = page_of(answer)
            found += [kind.decode(item) for item in page.items or ()]
            if not page.metadata.continue_:
                return found
            query["continue"] = page.metadata.continue_

    async def serves(self, kind: Kind[Any], subresource: str) -> bool:
        """Report whether the API server has a subresource of a kind, such as `resize` of pods (since Kubernetes 1.33).

        Raises ValueError where its answer cannot be read.
        """
        answer = await self._api.request("GET", kind.resource.group_path, gzip=True)
        return has_subresource(kind.resource, subresource, answer)

    async def create(self, kind: Kind[R], body: Mapping[str, object]) -> R:
        """A new object.

        Args:
            body: as in a manifest; apiVersion and kind may be left out. It is refused for a field that the kind does
                not have.

        Raises:
            Conflict: there is one of that name. Of a whole name, it may be what this very call made, where
                its first answer was lost.
        """
        whole = whole_body(kind.resource, body)
        answer = await self._api.create(
            kind.resource,
            whole.namespace,
            whole.content,
            field_manager=self.field_manager,
            strict=True,
            guarded=bool(whole.name),
        )
        return self._wrote(kind, answer)

    async def apply(self, kind: Kind[R], body: Mapping[str, object], *, force: bool = True) -> R:
        """Server-side apply: the fields of `body` become owned, and fields that we applied before and left out vanish.

        The object is created where there is none, also again after it was deleted: put `metadata.uid` into the
        body to change that very one or none.

        Args:
            body: what we want of it, as in a manifest; apiVersion and kind may be left out; a None is.
            force: take fields from other managers, as a controller should; else that is a Conflict.
        """
        whole = whole_body(kind.resource, body)
        if not whole.name:
            raise ValueError("metadata.name is missing: an apply needs the whole name; `create` makes generated ones")
        content = without_nones(whole.content)
        answer = await self._patch(kind, whole._replace(content=content), content_type=APPLY_PATCH, force=force)
        return self._wrote(kind, answer, updated="uid" in content["metadata"])

    async def patch(
        self,
        kind: Kind[R],
        which: ObjectKey | R,
        body: Mapping[str, object],
        *,
        subresource: str | None = None,
        strict: bool = False,
        strategic: bool = False,
    ) -> R:
        """JSON merge patch (RFC 7386): objects merge, everything else is replaced, None removes.

        Args:
            which: the object, and no successor of its name; or its key, for whatever has that name.
            body: the change. `metadata.uid` makes it a change of that object alone, as giving the object does,
                `metadata.resourceVersion` one of that version alone: else a Conflict.
            subresource: one that is answered with the object itself, such as `status` or a pod's `resize`; not `scale`.
            strict: it is refused for a field that the kind does not have; else the API server drops that.
            strategic: a strategic merge patch, of Kubernetes' own kinds alone: lists merge as well, by their entries'
                keys, unless they have `$patch: replace`.

        Raises:
            NotFound: there is no such object, or its kind has no such subresource.
        """
        if subresource == "scale":
            raise ValueError("subresource is 'scale', which is answered with a Scale: patch spec.replicas instead")
        key, uid = identity_of(which)
        patch, form = patch_body(kind.resource, key, body, uid), STRATEGIC_MERGE_PATCH if strategic else MERGE_PATCH
        answer = await self._patch(kind, patch, content_type=form, subresource=subresource, strict=strict)
        # Of a strategic one more is new than the patch says: what the server merged, and filled in.
        guard = None if strategic else patch.content.get("metadata", {}).get("resourceVersion")
        return self._wrote(kind, answer, updated=True, guard=guard)

    @overload
    async def patch_status(self, kind: Kind[Object[S, T]], obj: Object[S, T], status: T) -> Object[S, T]: ...
    @overload
    async def patch_status(
        self, kind: Kind[PlainObject], obj: PlainObject, status: Mapping[str, object]
    ) -> PlainObject: ...
    async def patch_status(self, kind: Kind[Any], obj: Any, status: object) -> Any:
        """Make the status of `obj` this one; nothing is sent where it is so already, and `obj` itself is given back.

        Args:
            obj: the version that the status was made for; another one in its place is a Conflict.
            status: the whole of it. A field that it leaves out, or has as None, is removed, unless the type of the
                kind's status does not know it.

        Raises:
            Conflict: the object has changed since, so that the status may be that of another specification.
            NotFound: there is no such object, or its kind has no status subresource; the message has which.
        """
        live = (obj.body.get("status") or {}) if isinstance(obj, PlainObject) else plain_status(obj.status)
        difference = merge_diff(live, plain_status(status))
        if not difference:
            return obj
        key = key_of(obj)
        body = {"metadata": {"resourceVersion": obj.resource_version}, "status": difference}
        try:
            return await self.patch(kind, key, body, subresource="status")
        except NotFound:
            await self._api.get(kind.resource, key.namespace or None, key.name)
            raise NotFound(
                404,
                "NotFound",
                f"{kind.resource.kind} has no status subresource: write `subresources: {{status: {{}}}}` into that "
                f"version of the CustomResourceDefinition {kind.resource.qualified_name}",
            ) from None

    async def delete(
        self,
        kind: Kind[R],
        which: ObjectKey | R,
        *,
        resource_version: str | None = None,
        propagation: Propagation | None = None,
    ) -> None:
        """Delete an object; one that is gone already is as good. Finalizers may hold it up.

        Give the object: a deletion by the key alone is of whatever has that name when it arrives, also where an earlier
        try that was not answered has taken the object already.

        Args:
            which: the object, and no successor of its name; or its key.
            resource_version: delete that version alone.
            propagation: what becomes of its dependents; None: the kind's default, which is Background for most.

        Raises:
            Conflict: it is there, in another version.
        """
        key, uid = identity_of(which)
        namespace = checked_key(kind.resource, key)
        deletion = self._api.delete(
            kind.resource, namespace, key.name, uid=uid, resource_version=resource_version, propagation=propagation
        )
        if await self._found(kind, key, uid, deletion) and (waiting := self._waiting()) is not None:
            own, reconciled = waiting
            own.expect_gone(reconciled, kind.resource.qualified_name, key, uid)

    async def evict(self, kind: Kind[R], pod: R) -> None:
        """Evict that very pod, as a drain of its node does, so that disruption budgets hold. One that is gone is fine.

        Raises:
            TooManyRequests: a disruption budget forbids it for now.
        """
        key, uid = identity_of(pod)
        namespace = checked_key(kind.resource, key)
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": key.name, "namespace": key.namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        manager, under = self.field_manager, (key.name, "eviction")
        eviction = self._api.create(kind.resource, namespace, body, field_manager=manager, under=under)
        if await self._found(kind, key, uid, eviction):
            self.outdated(kind, pod)

    async def _patch(self, kind: Kind[Any], body: Body, **options: Any) -> bytes:
        manager = self.field_manager
        return await self._api.patch(
            kind.resource, body.namespace, body.name, body.content, field_manager=manager, **options
        )

    async def _found(self, kind: Kind[Any], key: ObjectKey, uid: str | None, removal: Awaitable[bytes]) -> bool:
        """Report whether there was such an object to remove; Conflict where it is there, in another version."""
        try:
            await removal
        except NotFound:
            return False
        except Conflict:
            try:
                if uid is None or (await self.get(kind, key)).uid == uid:
                    raise
            except NotFound:
                pass
            return False
        return True

    def _wrote(self, kind: Kind[R], answer: bytes, *, updated: bool = False, guard: object = None) -> R:
        """The object that a write was answered with, which the key that it was made for now waits to see.

        Args:
            updated: it was there before. So its caches take the answer at once, but for one that has left them; what
                was just created they do not, as no event would ever take out what was deleted meanwhile.
            guard: the version that alone the write was of. Its maker knows all that is new to a cache that held
                this one.
        """
        obj = object_of(kind.decode, answer)
        key, context = key_of(obj), current_reconcile.get()
        if updated:
            writer = "" if context is None else context.controller
            for store in self._stores_of(kind):
                if (held := store.get(key)) is not None:
                    store.put(obj, known_to=writer if held.resource_version == guard else "")
        if (waiting := self._waiting()) is not None:
            own, reconciled = waiting
            name, stores = kind.resource.qualified_name, self._stores_of(kind)
            # Read once more only where the kind's own type does not show it: most writes are of objects that live.
            labels = getattr(obj, "labels", None)
            if labels is None and any(store.selection.labels for store in stores):
                labels = parts_of(answer)[0].labels
            own.expect(reconciled, name, key, obj.uid, obj.resource_version, labels=labels, known=updated)
            if getattr(obj, "deleting", True):
                metadata, _, _ = parts_of(answer)
                if metadata.deletion_timestamp and not metadata.finalizers:
                    own.expect_released(reconciled, name, key, obj.uid)
        return obj

    def outdated(self, kind: Kind[R], obj: R) -> None:
        """A write found `obj` in another version, or gone: the reconcile's key waits until a cache shows as much."""
        if (waiting := self._waiting()) is not None:
            own, reconciled = waiting
            own.expect_change(reconciled, kind.resource.qualified_name, obj)

    async def writers(self, kind: Kind[Any], key: ObjectKey) -> Writers:
        """Read who wrote which field of an object, live; NotFound where there is none."""
        return Writers(await self._api.get(kind.resource, checked_key(kind.resource, key), key.name))

    def _waiting(self) -> tuple[OwnWrites, ObjectKey] | None:
        """Return who awaits what is written now, and for which key; None outside a reconcile."""
        context = current_reconcile.get()
        if context is None or not isinstance(context.key, ObjectKey):
            return None
        own = self._own_writes_of(context.controller)
        return None if own is None else (own, context.key)
