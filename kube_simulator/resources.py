"""Resources that the simulator serves: each with its names, its verbs, its schema and its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from kube_simulator.schema.node import Node
from kube_simulator.values import Json


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, as `kubectl get` prints it."""

    definition: Json
    """`metav1.TableColumnDefinition`: name, type, format, description, priority."""
    path: str = ""
    """The JSONPath of a CRD's printer column; the cells of built-in kinds are made by code."""


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Paths at which a custom resource keeps what its scale subresource shows, such as `.spec.size`."""

    spec_replicas: str
    status_replicas: str
    label_selector: str = ""


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource of one group and version.

    Objects are stored by `collection`, which has no version: the simulator serves one version of each built-in one,
    and stores a custom one in the version that its CRD says.
    """

    group: str
    version: str
    plural: str
    kind: str
    singular: str
    namespaced: bool
    schema: Node
    verbs: frozenset[str] = frozenset(
        {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
    )
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    subresources: frozenset[str] = frozenset()
    """Of `status`, `scale`, `token`, `finalize`, ...: what stands in a path after the name."""
    scale: ScalePaths | None = None
    custom: bool = False
    selectable_fields: tuple[str, ...] = ()
    """Besides metadata.name and metadata.namespace, such as `status.phase`."""
    list_kind: str = ""
    stored: bool = True
    """False for reviews, which are answered and forgotten."""
    stored_as: str = ""
    """The collection, where it is another resource's: events are one store, whichever group they are asked for in."""

    @property
    def collection(self) -> str:
        """Collection in which its objects are stored: `deployments.apps`, `pods`."""
        return self.stored_as or self.full_name

    @property
    def full_name(self) -> str:
        """Plural and group, as messages name it: `deployments.apps`, `pods`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        """Version as objects have it: `apps/v1`, `v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def base_path(self) -> str:
        """Path at which its group and version are served: `/apis/apps/v1`, `/api/v1`."""
        return f"/apis/{self.api_version}" if self.group else f"/api/{self.version}"


@dataclass(slots=True)
class Registry:
    """The resources that are served now, built-in ones and those of CRDs; says when they change."""

    _served: dict[tuple[str, str, str], Resource] = field(default_factory=dict)
    _listeners: list[Callable[[], None]] = field(default_factory=list)

    def put(self, resource: Resource) -> None:
        """Serve it from now on, in the place of one of the same group, version and plural."""
        self._served[resource.group, resource.version, resource.plural] = resource
        self._changed()

    def remove(self, group: str, plural: str) -> None:
        """Serve it no more, in whatever version."""
        for key in [key for key in self._served if (key[0], key[2]) == (group, plural)]:
            del self._served[key]
        self._changed()

    def get(self, group: str, version: str, plural: str) -> Resource | None:
        """The resource of a path."""
        return self._served.get((group, version, plural))

    def of(self, group: str, plural: str) -> Resource | None:
        """The resource of a group in whichever version is served."""
        return next((each for each in self if (each.group, each.plural) == (group, plural)), None)

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        """The resource whose objects say this of themselves; owner references do."""
        return next((each for each in self if (each.api_version, each.kind) == (api_version, kind)), None)

    def __iter__(self) -> Iterator[Resource]:
        return iter(tuple(self._served.values()))

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call it whenever what is served changes: discovery and schemas are made anew then."""
        self._listeners.append(listener)

    def _changed(self) -> None:
        for listener in self._listeners:
            listener()


def full_resource(resource: str, subresource: str) -> str:
    """Resource and subresource, as rules and messages name them: `pods`, `pods/log`."""
    return f"{resource}/{subresource}" if subresource else resource
