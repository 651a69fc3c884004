"""The tiers of checks and tests, in the order in which they run, and what each needs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial

from benchmarks import operators
from lab import pythons
from lab.image import builders, example, images
from lab.kubectl import LabError
from lab.node import config, dns, node
from lab.programs import (
    go_tools,
    helm,
    kubernetes,
    kubernetes_releases,
    memcached,
    olm,
    prometheus,
    prometheus_operator,
)
from lab.pythons import Python
from lab.release import release
from tests.e2e.node_cluster import BUSYBOX, EXAMPLE_BUSYBOX, MEMCACHED, PYMEMCACHE
from tests.image import container


def _no_node() -> str | None:
    try:
        node.check_machine()
    except LabError as error:
        return str(error)
    return None


def _no_image() -> str | None:
    try:
        builders.find(images.APART)
    except builders.ImageError as error:
        return str(error)
    return container.why_not()


# What tiers build before they start, each once on a machine, by how it is called.
_KUBECTL: Mapping[str, Callable[[], object]] = {"kubectl": kubernetes.kubectl}
_KUBERNETES: Mapping[str, Callable[[], object]] = {**_KUBECTL, "Kubernetes": kubernetes.build}
_HELM: Mapping[str, Callable[[], object]] = {**_KUBERNETES, "Helm": helm.build}
_MONITORING: Mapping[str, Callable[[], object]] = {
    "Prometheus": prometheus.build,
    "prometheus-operator": prometheus_operator.build,
}
_VALIDATORS: Mapping[str, Callable[[], object]] = {"opm and verify_bundle": olm.validators}
_OLM: Mapping[str, Callable[[], object]] = {**_VALIDATORS, "OLM": olm.controllers}
_PEERS: Mapping[str, Callable[[], object]] = {"what runs on kopf and controller-runtime": operators.greetings}
_RELEASE: Mapping[str, Callable[[], object]] = {
    name: partial(go_tools.build, name) for name in ("cosign", "registry", "syft")
}
_MEMCACHED: Mapping[str, Callable[[], object]] = {"memcached with its proxy": memcached.build}
_IMAGE: Mapping[str, Callable[[], object]] = {**_KUBERNETES, "the operator's image": images.operator_image}
_NODE: Mapping[str, Callable[[], object]] = {
    **_IMAGE,
    "CoreDNS": dns.image,
    "memcached's image": lambda: images.memcached_image(MEMCACHED),
    "a client's image": lambda: images.client_image(PYMEMCACHE),
    "busybox's image": lambda: images.busybox_image(BUSYBOX),
    "the example's image": example.example_image,
    "the image of its shells": lambda: images.busybox_image(EXAMPLE_BUSYBOX),
    "the pause image": lambda: images.pause_image(config.PAUSE_IMAGE),
}


class Run(IntEnum):
    """A run of tiers, told apart by what it is for; each has the tiers of those before it."""

    QUICK = 0
    GATE = 1
    ALL = 2

    @property
    def command(self) -> str:
        """How a person asks for it."""
        return "./dev test" if self is Run.QUICK else f"./dev test --{self.name.lower()}"


# What the shorter runs build, of what their tiers would use: kubectl, Helm and memcached take a minute each, by any Go
# that there is or can be had, and by Debian's archive. Tests that want what a run does not build are skipped where the
# machine has not got it.
SMALL_BUILDS: Mapping[Run, frozenset[str]] = {
    Run.QUICK: frozenset(_KUBECTL),
    Run.GATE: frozenset({**_HELM, **_MEMCACHED}),
}
# Of these, what a run fails without.
NEEDED_BUILDS: Mapping[Run, frozenset[str]] = {Run.QUICK: frozenset(), Run.GATE: frozenset(_KUBERNETES)}


@dataclass(frozen=True, slots=True)
class Tier:
    """A tier is either a recipe of the justfile or folders of tests that run as one.

    ``since`` is the shortest run that has it. ``shorter`` is pytest's expression of marks for those of its tests that
    runs shorter than the longest take; slow tests they leave out everywhere. ``lacking`` says what keeps the tier from
    running on this machine, or None. ``needs`` is what must be built before: inside, deadlines would pass meanwhile.
    ``python`` is another release of Python that runs it, and, as ``release``, such a tier leaves out slow tests.
    ``cluster`` is which of the servers that its tests know they run on. ``release`` is which release of Kubernetes that
    is, if it is not the lab's own; such a tier always has ``shorter``. ``workers`` is how many processes share its
    tests, each with a cluster of its own; ``distribution`` is how (pytest-xdist's ``--dist``).

    Tiers run one after the other, none with more test processes than the two processors that the runs are made for: a
    deadline that passed for lack of a processor says nothing about the code.
    """

    name: str
    recipe: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    since: Run = Run.ALL
    shorter: str = ""
    python: Python | None = None
    cluster: str | None = None
    release: str = ""
    needs: Mapping[str, Callable[[], object]] = field(default_factory=dict)
    lacking: Callable[[], str | None] | None = None
    workers: int = 1
    distribution: str = "loadfile"


def _unit(name: str, since: Run = Run.ALL, python: Python | None = None) -> Tier:
    prepared = {f"Python for {name}": python.prepare} if python else {}
    return Tier(
        name,
        folders=("tests/unit",),
        since=since,
        needs={**_KUBECTL, **_VALIDATORS, "crdify": partial(go_tools.build, "crdify"), **prepared},
        python=python,
        lacking=python.lacking if python else None,
        workers=2,
        distribution="worksteal",
    )


TIERS = (
    Tier("lint", recipe=("lint",), since=Run.QUICK),
    Tier("docs", recipe=("docs",), since=Run.QUICK),
    Tier("demo", recipe=("demo", "--plain")),
    _unit("unit", Run.QUICK),
    *(_unit(f"unit on Python {release}", python=Python(release)) for release in pythons.RELEASES),
    _unit("unit with the newest dependencies", python=Python(pythons.image_release(), newest=True)),
    Tier(
        "hand-over between real memcacheds",
        folders=("tests/handover",),
        since=Run.GATE,
        needs=_MEMCACHED,
        workers=2,
        distribution="worksteal",
    ),
    Tier(
        "conformance and examples on the simulator",
        folders=("tests/conformance", "tests/examples"),
        since=Run.QUICK,
        cluster="simulator",
        needs=_KUBECTL,
        workers=2,
    ),
    Tier(
        "integration on the simulator",
        folders=("tests/integration",),
        since=Run.QUICK,
        shorter="not core",
        cluster="simulator",
        needs={**_KUBECTL, **_MONITORING},
        workers=2,
    ),
    Tier(
        "integration on kubernetes",
        folders=("tests/integration",),
        since=Run.GATE,
        shorter="core",
        cluster="kubernetes",
        needs={**_HELM, **_MONITORING, **_PEERS},
        workers=2,
    ),
    *(
        Tier(
            f"core of the integration on Kubernetes {release}",
            folders=("tests/integration",),
            shorter="core",
            cluster="kubernetes",
            release=release,
            needs={**_HELM, **_PEERS, f"Kubernetes {release}": partial(kubernetes_releases.build, release)},
            workers=2,
        )
        for release in kubernetes_releases.RELEASES
    ),
    Tier(
        "conformance and examples on kubernetes",
        folders=("tests/conformance", "tests/examples"),
        cluster="kubernetes",
        needs=_KUBERNETES,
        workers=2,
    ),
    Tier("helm", folders=("tests/helm",), since=Run.GATE, shorter="core", needs=_HELM, workers=2),
    Tier("image", folders=("tests/image",), needs=_IMAGE, lacking=_no_image),
    Tier(
        "e2e on a real node", folders=("tests/e2e",), needs={**_NODE, **_HELM, **_MONITORING, **_OLM}, lacking=_no_node
    ),
    Tier(
        "a release, as a stranger sees it",
        folders=("tests/release",),
        needs={**_NODE, **_HELM, **_VALIDATORS, **_RELEASE},
        lacking=release.why_not,
    ),
    Tier("faults on the simulator", folders=("tests/faults",), cluster="simulator", needs=_KUBECTL, workers=2),
    Tier(
        "faults on kubernetes",
        folders=("tests/faults",),
        cluster="kubernetes",
        needs=_KUBERNETES,
        workers=2,
        distribution="worksteal",
    ),
)
