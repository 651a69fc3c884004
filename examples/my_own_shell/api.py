"""API of the example: the kind MyOwnShell, and the kinds of Kubernetes that it is made of."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from operator_runtime import Conditions, CustomResource, Object, typed

GROUP, VERSION = "my-first-operator.jgato.io", "v1alpha1"


class MyOwnShellSpec(Struct, frozen=True):
    """Desired state."""

    size: Annotated[int, Meta(ge=0, description="How many shells to run.", extra_json_schema={"format": "int32"})]


class MyOwnShellStatus(Struct, frozen=True):
    """Most recently observed state. Written by the operator."""

    nodes: Annotated[tuple[str, ...], Meta(description="Sorted names of the pods to open a shell in.")] = ()
    conditions: Conditions = ()


class DeploymentStatus(Struct, frozen=True):
    """Fields that are read of a Deployment's status."""

    readyReplicas: int = 0


class PodStatus(Struct, frozen=True):
    """Fields that are read of a pod's status."""

    phase: str = ""


class Unread(Struct, frozen=True):
    """Part of an object that is not read, so that it takes no memory."""


MY_OWN_SHELL = CustomResource(
    group=GROUP,
    version=VERSION,
    kind="MyOwnShell",
    plural="myownshells",
    singular="myownshell",
    description="A number of pods to open a shell in.",
    spec=MyOwnShellSpec,
    status=MyOwnShellStatus,
    name_max_length=63,  # it is also the value of a label
)
SHELLS = typed(f"{GROUP}/{VERSION}", "MyOwnShell", "myownshells", spec=MyOwnShellSpec, status=MyOwnShellStatus)
DEPLOYMENTS = typed("apps/v1", "Deployment", "deployments", spec=dict[str, Any], status=DeploymentStatus)
PODS = typed("v1", "Pod", "pods", spec=Unread, status=PodStatus)

Shell = Object[MyOwnShellSpec, MyOwnShellStatus]
Deployment = Object[dict[str, Any], DeploymentStatus]
Pod = Object[Unread, PodStatus]
