"""The OLM bundle: what the Operator Lifecycle Manager installs the operator from, made of manifests/.

``python -m lab.packaging.bundle write`` makes bundle/ and bundle.Dockerfile anew; ``build`` and ``push`` are for its
image. The format is that of operator-registry's docs/design/operator-bundle.md (`registry+v1`); the words of the
ClusterServiceVersion stand in manifests/olm/.
"""

from __future__ import annotations

import argparse
import base64
import copy
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lab.image import builders
from lab.image.builders import Builder, ImageError
from lab.packaging.manifests import IMAGE, INSTALL, MANIFESTS, of_group
from memcached_operator import __version__

PACKAGE = "memcached-operator"
CHANNEL = "candidate"
"""Where releases are announced. OLM's convention knows candidate, fast and stable; before 1.0 it is the first."""

BUNDLE_IMAGE = f"localhost/{PACKAGE}-bundle:{__version__}"
DOCKERFILE = "bundle.Dockerfile"
TARGET_NAMESPACES = "metadata.annotations['olm.targetNamespaces']"
"""Where OLM writes the OperatorGroup's namespaces into the operator's pod: joined by commas, empty for all."""

# Paths in the image, which the format fixes.
_FOLDERS = {"manifests": "manifests/", "metadata": "metadata/", "tests/scorecard": "tests/scorecard/"}
_ANNOTATIONS: Mapping[str, str] = {
    "operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
    "operators.operatorframework.io.bundle.manifests.v1": _FOLDERS["manifests"],
    "operators.operatorframework.io.bundle.metadata.v1": _FOLDERS["metadata"],
    "operators.operatorframework.io.bundle.package.v1": PACKAGE,
    "operators.operatorframework.io.bundle.channels.v1": CHANNEL,
    "operators.operatorframework.io.bundle.channel.default.v1": CHANNEL,
    "operators.operatorframework.io.test.mediatype.v1": "scorecard+v1",
    "operators.operatorframework.io.test.config.v1": _FOLDERS["tests/scorecard"],
}

# How a console shows fields, by their types in the CRD; operator-lifecycle-manager's "descriptors" has the list.
_CONSOLE = "com.tectonic.ui"
_WIDGETS = {"integer": "number", "string": "text", "boolean": "booleanSwitch"}

# A Kubernetes object, as YAML has it.
Object = dict[str, Any]


class BundleError(Exception):
    """The manifests are not as a bundle needs them; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Sources of a bundle.

    Attributes:
        operator: the objects of the install for one namespace. Its Role has all that the operator needs where it
            watches: OLM grants it in each namespace of the OperatorGroup, or by a ClusterRole where that means all.
        cluster: the cluster-wide objects: the CRD, and the ClusterRoles for users.
        crd: text of the CRD.
        samples: what users may write.
        words: the ClusterServiceVersion without what the others say.
        icon: an SVG.
        scorecard: text of scorecard's configuration.
    """

    operator: Sequence[Object]
    cluster: Sequence[Object]
    crd: str
    samples: Sequence[Object]
    words: Object
    icon: bytes
    scorecard: str


def icon(svg: bytes) -> Object:
    """An icon as OLM has one."""
    return {"base64data": base64.b64encode(svg).decode(), "mediatype": "image/svg+xml"}


def read_sources() -> Sources:
    """Read what stands in manifests/ now."""
    crds = sorted((MANIFESTS / "crd").glob("*_*.yaml"))
    if len(crds) != 1:
        raise BundleError(f"{len(crds)} CRDs in {MANIFESTS / 'crd'}, one is needed")
    return Sources(
        operator=_objects(INSTALL / "namespaced.yaml"),
        cluster=_objects(INSTALL / "crds.yaml"),
        crd=crds[0].read_text(),
        samples=[sample for path in sorted((MANIFESTS / "samples").glob("*_*.yaml")) for sample in _objects(path)],
        words=_objects(MANIFESTS / "olm" / "clusterserviceversion.yaml")[0],
        icon=(MANIFESTS / "olm" / "icon.svg").read_bytes(),
        scorecard=(MANIFESTS / "olm" / "scorecard.yaml").read_text(),
    )


def bundle(sources: Sources, *, image: str = IMAGE, version: str = __version__) -> dict[str, str]:
    """Every file of the bundle by its path in the repository.

    Args:
        image: the operator's, as a cluster pulls it.
        version: the release that it is a bundle of.

    Raises:
        BundleError: the manifests are not as a bundle needs them.
    """
    csv = cluster_service_version(sources, image, version)
    crd = yaml.safe_load(sources.crd)
    plural, group = crd["metadata"]["name"].split(".", 1)
    files = {
        f"bundle/manifests/{PACKAGE}.clusterserviceversion.yaml": _text(csv),
        f"bundle/manifests/{group}_{plural}.yaml": sources.crd,
        "bundle/metadata/annotations.yaml": _text({"annotations": dict(_ANNOTATIONS)}),
        "bundle/tests/scorecard/config.yaml": sources.scorecard,
        DOCKERFILE: _dockerfile(),
    }
    for extra in _extras(sources):
        kind, name = extra["kind"].lower(), extra["metadata"]["name"]
        files[f"bundle/manifests/{name}_{extra['apiVersion'].replace('/', '_')}_{kind}.yaml"] = _text(extra)
    return files


def cluster_service_version(sources: Sources, image: str, version: str) -> Object:
    """The bundle's description of one release, and of how it is installed.

    Raises:
        BundleError: the manifests are not as a bundle needs them.
    """
    csv = copy.deepcopy(sources.words)
    deployment = _for_olm(_only(sources.operator, "Deployment"), image)
    role = _only(sources.operator, "Role")
    account = deployment["spec"]["template"]["spec"]["serviceAccountName"]
    annotations: dict[str, str] = csv["metadata"]["annotations"]
    annotations["olm.skipRange"] = annotations["olm.skipRange"].format(version=version)
    annotations |= {
        "alm-examples": json.dumps(list(sources.samples), indent=2),
        "containerImage": image,
    }
    csv["metadata"] = {
        "name": f"{PACKAGE}.v{version}",
        "namespace": "placeholder",  # OLM puts the namespace of the Subscription here
        "annotations": dict(sorted(annotations.items())),
        "labels": csv["metadata"]["labels"],
    }
    spec: Object = csv["spec"]
    spec["version"] = version
    spec["icon"] = [icon(sources.icon)]
    _describe(spec["customresourcedefinitions"]["owned"], yaml.safe_load(sources.crd))
    spec["install"] = {
        "strategy": "deployment",
        "spec": {
            "permissions": [{"serviceAccountName": account, "rules": role["rules"]}],
            "deployments": [
                {
                    "name": deployment["metadata"]["name"],
                    "label": deployment["metadata"]["labels"],
                    "spec": deployment["spec"],
                }
            ],
        },
    }
    spec["relatedImages"] = [{"name": name, "image": named} for name, named in _related_images(deployment)]
    return csv


def _for_olm(deployment: Object, image: str) -> Object:
    """The operator's Deployment, with what OLM says of the namespaces to watch."""
    deployment = copy.deepcopy(deployment)
    containers = deployment["spec"]["template"]["spec"]["containers"]
    if len(containers) != 1:
        raise BundleError(f"the operator's pod has {len(containers)} containers, one is expected")
    containers[0]["image"] = image
    watch = [variable for variable in containers[0]["env"] if variable["name"] == "WATCH_NAMESPACE"]
    if len(watch) != 1:
        raise BundleError("the operator's container has no variable WATCH_NAMESPACE, or several")
    watch[0].pop("value", None)
    watch[0]["valueFrom"] = {"fieldRef": {"fieldPath": TARGET_NAMESPACES}}
    return deployment


def _related_images(deployment: Object) -> Iterator[tuple[str, str]]:
    """Yield what a mirror of images must hold: the operator's, and those of its variables RELATED_IMAGE_."""
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    yield PACKAGE, container["image"]
    for variable in container["env"]:
        if variable["name"].startswith("RELATED_IMAGE_"):
            yield variable["name"].removeprefix("RELATED_IMAGE_").lower().replace("_", "-"), variable["value"]


def _describe(owned: Sequence[Object], crd: Object) -> None:
    """Fill in, for the one kind, what the CRD says of it and of its fields."""
    if [kind["name"] for kind in owned] != [crd["metadata"]["name"]]:
        raise BundleError(
            f"manifests/olm owns {[kind['name'] for kind in owned]}, the CRD is {crd['metadata']['name']}"
        )
    (version,) = (version for version in crd["spec"]["versions"] if version["storage"])
    schema = version["schema"]["openAPIV3Schema"]
    owned[0].update(kind=crd["spec"]["names"]["kind"], version=version["name"], description=schema["description"])
    for part in ("spec", "status"):
        fields = schema["properties"][part]["properties"]
        owned[0][f"{part}Descriptors"] = [
            {
                "path": name,
                "displayName": _in_words(name),
                "description": field["description"],
                "x-descriptors": [f"urn:alm:descriptor:{each}" for each in _widgets(part, name, field)],
            }
            for name, field in fields.items()
        ]


def _in_words(field: str) -> str:
    """Name of a field as a console shows it: `maxItemSize` is "Max item size", `tls` "TLS"."""
    return (
        field.upper()
        if len(field) <= len("tls")
        else re.sub("[A-Z]", lambda found: f" {found[0].lower()}", field).capitalize()
    )


def _widgets(part: str, name: str, field: Object) -> Sequence[str]:
    """By which widgets a console shows a field."""
    if part == "status":
        return ["io.kubernetes.conditions" if name == "conditions" else f"{_CONSOLE}:text"]
    if "enum" in field:
        return [f"{_CONSOLE}:select:{each}" for each in field["enum"]]
    return [
        f"{_CONSOLE}:podCount" if name == "size" else f"{_CONSOLE}:{_WIDGETS.get(field.get('type', ''), 'advanced')}"
    ]


def _extras(sources: Sources) -> Iterator[Object]:
    """The objects that OLM applies as they are. Accounts and their permissions it makes itself, of the CSV."""
    for thing in sources.operator:
        if thing["kind"] not in ("ServiceAccount", "Role", "RoleBinding", "Deployment"):
            yield thing
    for thing in sources.cluster:
        if thing["kind"] != "CustomResourceDefinition":
            yield thing


def _dockerfile() -> str:
    labels = "\n".join(f"LABEL {name}={value}" for name, value in _ANNOTATIONS.items())
    copies = "\n".join(f"COPY bundle/{folder} /{path}" for folder, path in _FOLDERS.items())
    return (
        "# The bundle as an image, which is not run: `./dev bundle-build`. Made by `./dev bundle`; do not edit.\n"
        f"FROM scratch\n\n# As in bundle/metadata/annotations.yaml.\n{labels}\n\n{copies}\n"
    )


def _only(objects: Sequence[Object], kind: str) -> Object:
    found = [thing for thing in objects if thing["kind"] == kind]
    if len(found) != 1:
        raise BundleError(f"manifests/install/namespaced.yaml has {len(found)} objects of kind {kind}, one is needed")
    return found[0]


def _objects(path: Path) -> list[Object]:
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as such, and repeats what is used twice."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)


def _text(thing: Object) -> str:
    dumped: str = yaml.dump(thing, Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True)
    return f"# Made by `./dev bundle` from manifests/; do not edit.\n{dumped}"


def write(files: Mapping[str, str], root: Path) -> None:
    """Put the files below ``root``, in the place of all that was in bundle/."""
    shutil.rmtree(root / "bundle", ignore_errors=True)
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(of_group(text))


def write_for_operatorhub(files: Mapping[str, str], folder: Path, version: str = __version__) -> None:
    """Put a bundle into a checkout of OperatorHub's repository, as it has operators and their releases.

    A ci.yaml that is there stays: the repository takes changes of it alone
    (https://operator-framework.github.io/community-operators/operator-version-update/).
    """
    package = folder / "operators" / PACKAGE
    for name, text in files.items():
        if name != DOCKERFILE:
            path = package / version / name.removeprefix("bundle/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(of_group(text))
    if not (package / "ci.yaml").exists():
        # Releases follow each other by their versions: none names the one that it replaces.
        (package / "ci.yaml").write_text("---\nupdateGraph: semver-mode\n")


def build(builder: Builder, image: str, root: Path = MANIFESTS.parent, *, more: Sequence[str] = ()) -> None:
    """Build the bundle's image of what lies in bundle/ now.

    Args:
        more: options of the builder's own.

    Raises:
        ImageError: there is no bundle, or the builder failed.
    """
    if not (root / DOCKERFILE).is_file() or not (root / "bundle").is_dir():
        raise ImageError(f"no {DOCKERFILE} and bundle/ in {root}: ./dev bundle makes them")
    # A folder of its own: .dockerignore speaks of the operator's image.
    with tempfile.TemporaryDirectory(prefix="memcached-operator-bundle-") as context:
        shutil.copy(root / DOCKERFILE, Path(context) / "Dockerfile")
        shutil.copytree(root / "bundle", Path(context) / "bundle")
        builder.build(Path(context), image, arguments={}, secrets={}, more=more)


def main(arguments: Sequence[str]) -> int:
    """Run one command and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lab.packaging.bundle", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    written = commands.add_parser("write", help="make bundle/ anew")
    written.add_argument("--image", help=f"the operator's image (default, also where it is empty: {IMAGE})")
    hub = commands.add_parser("operatorhub", help="put the bundle into a checkout of OperatorHub's repository")
    hub.add_argument("folder", type=Path)
    hub.add_argument("--image", help=f"the operator's image (default, also where it is empty: {IMAGE})")
    for name, what in (("build", "build the bundle's image"), ("push", "send it to its registry")):
        command = commands.add_parser(
            name, help=what, allow_abbrev=False, epilog="Further options go to the builder, each in one word."
        )
        command.add_argument("--image", help=f"its name (default, also where it is empty: {BUNDLE_IMAGE})")
    options, more = parser.parse_known_args(arguments)
    if more and options.command in ("write", "operatorhub"):
        parser.error(f"unknown: {' '.join(more)}")
    try:
        match options.command:
            case "write":
                write(bundle(read_sources(), image=options.image or IMAGE), MANIFESTS.parent)
            case "operatorhub":
                write_for_operatorhub(bundle(read_sources(), image=options.image or IMAGE), options.folder)
            case "build":
                builder = builders.find()
                build(builder, options.image or BUNDLE_IMAGE, more=more)
                print(f"{options.image or BUNDLE_IMAGE} is in the store of {builder.name}")
            case _:
                builders.find().push(options.image or BUNDLE_IMAGE, more)
    except (BundleError, ImageError) as error:
        print(f"bundle: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
