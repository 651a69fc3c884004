"""API of the example: the kind Publication, and the kinds of Kubernetes that it uses."""

from typing import Annotated

from msgspec import Meta, Struct

from operator_runtime import Conditions, CustomResource, Object, PrinterColumn, plain, typed

GROUP, VERSION = "publisher.example.com", "v1alpha1"
NAME = "^[A-Za-z0-9][A-Za-z0-9._-]*$"  # no path: nothing beside the operator's folder is published


class PublicationSpec(Struct, frozen=True):
    """Desired state."""

    folder: Annotated[str, Meta(pattern=NAME, description="Name of the folder; each file in it becomes a key.")]
    namespaceLabels: Annotated[dict[str, str], Meta(min_length=1, description="Labels of the namespaces that get it.")]


class PublicationStatus(Struct, frozen=True):
    """Most recently observed state. Written by the operator."""

    namespaces: Annotated[tuple[str, ...], Meta(description="Sorted names of the namespaces that have it.")] = ()
    conditions: Conditions = ()


class Unread(Struct, frozen=True):
    """Part of an object that is not read, so that it takes no memory."""


PUBLICATION = CustomResource(
    group=GROUP,
    version=VERSION,
    kind="Publication",
    plural="publications",
    singular="publication",
    description="Files of a folder, as a ConfigMap of this name in many namespaces.",
    spec=PublicationSpec,
    status=PublicationStatus,
    namespaced=False,  # what owns objects in many namespaces is in none
    columns=[
        PrinterColumn("Folder", "string", ".spec.folder", "What is published."),
        PrinterColumn(
            "Published", "string", '.status.conditions[?(@.type=="Published")].status', "Whether all have it."
        ),
    ],
)
PUBLICATIONS = typed(
    f"{GROUP}/{VERSION}",
    "Publication",
    "publications",
    spec=PublicationSpec,
    status=PublicationStatus,
    namespaced=False,
)
CONFIG_MAPS = plain("v1", "ConfigMap", "configmaps")
# Others': the operator neither defines nor owns them. Only their metadata is kept.
NAMESPACES = typed("v1", "Namespace", "namespaces", spec=Unread, status=Unread, namespaced=False)

Publication = Object[PublicationSpec, PublicationStatus]
Namespace = Object[Unread, Unread]
