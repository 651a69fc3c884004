"""The controller: of each Publication it keeps a ConfigMap in each namespace that the Publication chooses."""

from pathlib import Path
from typing import Any

from examples.publisher.api import (
    CONFIG_MAPS,
    GROUP,
    NAMESPACES,
    PUBLICATIONS,
    Namespace,
    Publication,
    PublicationStatus,
)
from examples.publisher.folder import Folder
from examples.publisher.settings import Settings
from operator_runtime import (
    Channel,
    Condition,
    Forbidden,
    Invalid,
    ObjectKey,
    Operator,
    PlainObject,
    Refused,
    Result,
    generation_changed,
    labels_changed,
    owner_reference,
    set_conditions,
)

LABEL = f"{GROUP}/published"
WORKERS = 4


def set_up(operator: Operator, settings: Settings) -> None:
    """Put the operator together: what requests a reconcile of a Publication, and what reconciles it."""
    changed: Channel[str] = Channel()
    folder = Folder(Path(settings.folder), changed)
    publisher = Publisher(operator, folder)
    operator.add_service("folder", folder)
    controller = operator.controller(
        "publication", PUBLICATIONS, publisher.reconcile, workers=WORKERS, when=generation_changed
    )
    controller.owns(CONFIG_MAPS, labels=LABEL)
    controller.watches(NAMESPACES, publisher.publications_for, when=labels_changed)
    controller.watches_channel(changed, publisher.publications_of)


def chooses(publication: Publication, namespace: Namespace) -> bool:
    """Report whether a Publication is for a namespace."""
    return publication.spec.namespaceLabels.items() <= namespace.labels.items()


def publication_of(config_map: PlainObject) -> ObjectKey | None:
    """Return the Publication that controls a ConfigMap."""
    owner = config_map.controller
    return ObjectKey("", owner.name) if owner is not None and owner.kind == "Publication" else None


def config_map_of(publication: Publication, namespace: str, files: dict[str, str]) -> dict[str, Any]:
    """Return the ConfigMap that a Publication specifies."""
    metadata = {
        "name": publication.name,
        "namespace": namespace,
        "labels": {LABEL: "true"},
        "ownerReferences": [owner_reference(PUBLICATIONS, publication)],
    }
    return {"metadata": metadata, "data": files}


class Publisher:
    """Reconciles Publications: reads what there is of one, and changes what is not as desired."""

    def __init__(self, operator: Operator, folder: Folder) -> None:
        self._client, self._watched, self._folder = operator.client, operator.namespaces, folder
        self._publications, self._namespaces = operator.informer(PUBLICATIONS), operator.informer(NAMESPACES)
        self._config_maps = operator.informer(CONFIG_MAPS, labels=LABEL)
        self._config_maps.add_index("publication", publication_of)
        self._owned = operator.owned(PUBLICATIONS, CONFIG_MAPS, labels=LABEL)

    def publications_for(self, namespace: Namespace) -> list[ObjectKey]:
        """List the Publications of a namespace; the runtime calls this with it before a change, and after."""
        return [each.key for each in self._publications.values() if chooses(each, namespace)]

    def publications_of(self, folder: str) -> list[ObjectKey]:
        """List the Publications of a folder's files."""
        return [each.key for each in self._publications.values() if each.spec.folder == folder]

    async def reconcile(self, key: ObjectKey) -> Result:
        """Reconcile one Publication, whatever has happened to its objects."""
        publication = self._publications.get(key)
        if publication is None or publication.deleting:
            return Result()  # the garbage collector takes the ConfigMaps along
        files = self._folder.contents(publication.spec.folder)
        if isinstance(files, str):  # what is published stays
            await self._report(publication, publication.status.namespaces, "Unreadable", files)
            return Result()
        chosen = {each.name for each in self._namespaces.values() if chooses(publication, each) and not each.deleting}
        if self._watched:
            chosen &= {*self._watched}
        for config_map in self._config_maps.by_index("publication", key):
            if config_map.namespace not in chosen:
                await self._client.delete(CONFIG_MAPS, config_map)
        refused = {name: why for name in sorted(chosen) if (why := await self._publish(publication, name, files))}
        reason, message = "Published", f"{len(files)} file(s) in {len(chosen)} namespace(s)."
        if refused:
            reason, message = "Refused", f"Not in {len(refused)} of {len(chosen)}: {next(iter(refused.values()))}"
        await self._report(publication, tuple(sorted(chosen - refused.keys())), reason, message)
        return Result(requeue=bool(refused))  # no watch reports the end of what refused them

    async def _publish(self, publication: Publication, namespace: str, files: dict[str, str]) -> str | None:
        """Ensure the ConfigMap in one namespace; return why that is refused. The other namespaces do not wait."""
        seen = namespace in publication.status.namespaces
        try:
            await self._owned.ensure(
                publication, config_map_of(publication, namespace, files), seen=seen, desired_changed=True
            )
        except (Forbidden, Invalid, Refused) as error:
            return str(error)
        return None

    async def _report(self, publication: Publication, namespaces: tuple[str, ...], reason: str, message: str) -> None:
        """Write the status of a Publication, if it differs."""
        published = Condition("Published", "True" if reason == "Published" else "False", reason, message)
        conditions = set_conditions(publication.status.conditions, [published], generation=publication.generation)
        await self._client.patch_status(PUBLICATIONS, publication, PublicationStatus(namespaces, conditions))
