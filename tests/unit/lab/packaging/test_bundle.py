"""The OLM bundle: made of the manifests, and after the rules of its format.

The rules are those that operator-framework's validators hold (the suites `default`, `good-practices` and
`operatorhub` of `operator-sdk bundle validate`) and that docs/design/operator-bundle.md of operator-registry tells.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_simulator.schema import custom
from kube_simulator.schema.validation import validate
from lab.packaging.bundle import DOCKERFILE, PACKAGE, TARGET_NAMESPACES, bundle, main, read_sources
from lab.packaging.manifests import IMAGE
from memcached_operator import __version__, settings_schema

PROJECT = Path(__file__).parents[4]
COMMITTED = {
    str(path.relative_to(PROJECT)): path.read_text()
    for path in [*(PROJECT / "bundle").rglob("*"), PROJECT / DOCKERFILE]
    if path.is_file()
}
MANIFESTS = {
    name: next(yaml.safe_load_all(text)) for name, text in COMMITTED.items() if name.startswith("bundle/manifests/")
}
[CSV] = [thing for thing in MANIFESTS.values() if thing["kind"] == "ClusterServiceVersion"]
SPEC = CSV["spec"]
[CRD] = [thing for thing in MANIFESTS.values() if thing["kind"] == "CustomResourceDefinition"]
SCHEMA = CRD["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
SEMVER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")


def deployment(csv: dict[str, Any] = CSV) -> dict[str, Any]:
    [found] = csv["spec"]["install"]["spec"]["deployments"]
    assert isinstance(found, dict)
    return found


def container(csv: dict[str, Any] = CSV) -> dict[str, Any]:
    [found] = deployment(csv)["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


def variable(name: str) -> dict[str, Any]:
    [found] = [variable for variable in container()["env"] if variable["name"] == name]
    assert isinstance(found, dict)
    return found


def test_the_committed_bundle_is_what_the_manifests_make() -> None:
    assert bundle(read_sources()) == COMMITTED, "run ./dev bundle"


def test_each_owned_crd_is_in_the_bundle_and_each_crd_of_the_bundle_is_owned() -> None:
    names = CRD["spec"]["names"]
    served = {(CRD["metadata"]["name"], names["kind"], version["name"]) for version in CRD["spec"]["versions"]}
    owned = [(kind["name"], kind["kind"], kind["version"]) for kind in SPEC["customresourcedefinitions"]["owned"]]
    assert set(owned) == served
    assert len(owned) == len(served)
    assert yaml.safe_load((PROJECT / "manifests/crd/cache.example.com_memcacheds.yaml").read_text()) == CRD


@pytest.mark.parametrize("part", ["spec", "status"])
def test_each_field_has_a_descriptor_and_no_descriptor_lacks_its_field(part: str) -> None:
    [owned] = SPEC["customresourcedefinitions"]["owned"]
    fields = SCHEMA["properties"][part]["properties"]
    descriptors = {descriptor["path"]: descriptor for descriptor in owned[f"{part}Descriptors"]}
    assert descriptors.keys() == fields.keys()
    for path, descriptor in descriptors.items():
        assert descriptor["displayName"]
        assert descriptor["description"] == fields[path]["description"]
        assert all(name.startswith("urn:alm:descriptor:") for name in descriptor["x-descriptors"])


def test_each_owned_kind_has_an_example_that_its_crd_accepts() -> None:
    examples = json.loads(CSV["metadata"]["annotations"]["alm-examples"])
    group, [version] = CRD["spec"]["group"], CRD["spec"]["versions"]
    kinds = {(example["apiVersion"], example["kind"]) for example in examples}
    assert kinds == {(f"{group}/{version['name']}", CRD["spec"]["names"]["kind"])}
    node = custom.node_of(SCHEMA)
    for example in examples:
        assert validate(node, example) == []
        assert example["spec"].keys() <= SCHEMA["properties"]["spec"]["properties"].keys()
        # scorecard's basic-check-spec
        assert example["spec"]
    assert validate(node, {**examples[0], "spec": {"size": "three"}}), "or the check above finds nothing ever"


def test_the_permissions_are_those_of_the_role_and_no_permission_is_cluster_wide() -> None:
    [granted] = SPEC["install"]["spec"]["permissions"]
    role = yaml.safe_load((PROJECT / "manifests/rbac/role.yaml").read_text())
    assert granted["rules"] == role["rules"]
    assert granted["serviceAccountName"] == deployment()["spec"]["template"]["spec"]["serviceAccountName"]
    # OLM turns permissions into a ClusterRole where the OperatorGroup means all namespaces.
    assert "clusterPermissions" not in SPEC["install"]["spec"]


def test_the_deployment_is_the_manifests_but_for_what_olm_says_of_the_namespaces() -> None:
    objects = yaml.safe_load_all((PROJECT / "manifests/install/namespaced.yaml").read_text())
    [desired] = [thing for thing in objects if thing["kind"] == "Deployment"]
    [server] = desired["spec"]["template"]["spec"]["containers"]
    [watch] = [each for each in server["env"] if each["name"] == "WATCH_NAMESPACE"]
    watch["valueFrom"]["fieldRef"]["fieldPath"] = TARGET_NAMESPACES
    assert SPEC["install"]["strategy"] == "deployment"
    assert deployment()["name"] == desired["metadata"]["name"]
    assert deployment()["label"] == desired["metadata"]["labels"]
    assert deployment()["spec"] == desired["spec"]


@pytest.mark.parametrize(
    ("mode", "annotation", "watched"),
    [
        ("OwnNamespace", "operators", ("operators",)),
        ("SingleNamespace", "shop", ("shop",)),
        ("MultiNamespace", "shop,depot", ("shop", "depot")),
        ("AllNamespaces", "", ()),
    ],
)
def test_the_operator_watches_what_olm_writes_into_its_pod_in_each_install_mode(
    mode: str, annotation: str, watched: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {"type": mode, "supported": True} in SPEC["installModes"]
    assert variable("WATCH_NAMESPACE") == {
        "name": "WATCH_NAMESPACE",
        "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['olm.targetNamespaces']"}},
    }
    monkeypatch.setenv("WATCH_NAMESPACE", annotation)
    assert settings_schema.SCHEMA.load({}, os.environ).watch_namespaces == watched


def test_the_version_is_the_operator_s_and_the_oldest_kubernetes_the_chart_s() -> None:
    assert (CSV["metadata"]["name"], SPEC["version"]) == (f"{PACKAGE}.v{__version__}", __version__)
    assert SEMVER.fullmatch(SPEC["minKubeVersion"])
    chart = yaml.safe_load((PROJECT / "charts/memcached-operator/Chart.yaml").read_text())
    assert chart["kubeVersion"] == f">={SPEC['minKubeVersion']}-0"


def test_another_image_takes_the_place_of_the_operator_s_everywhere() -> None:
    other = "registry.example.com/tools/memcached-operator@sha256:" + "0" * 64
    files = bundle(read_sources(), image=other)
    assert not any(IMAGE in text for text in files.values())
    csv = yaml.safe_load(files[f"bundle/manifests/{PACKAGE}.clusterserviceversion.yaml"])
    assert container(csv)["image"] == csv["metadata"]["annotations"]["containerImage"] == other
    assert {"name": PACKAGE, "image": other} in csv["spec"]["relatedImages"]


def test_operatorhub_gets_a_folder_of_the_release_and_keeps_its_own_settings(tmp_path: Path) -> None:
    image = "registry.example.com/caches/operator@sha256:" + 64 * "a"
    package = tmp_path / "operators" / PACKAGE
    assert main(["operatorhub", "--image", image, str(tmp_path)]) == 0
    release = package / __version__
    made = {str(Path("bundle") / each.relative_to(release)) for each in release.rglob("*") if each.is_file()}
    assert made == COMMITTED.keys() - {DOCKERFILE}
    csv = yaml.safe_load((release / "manifests" / f"{PACKAGE}.clusterserviceversion.yaml").read_text())
    assert csv["metadata"]["annotations"]["containerImage"] == image
    # What its page of an operator shows, and its pipeline asks for.
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", csv["metadata"]["annotations"]["createdAt"])
    [icon] = csv["spec"]["icon"]
    assert icon["mediatype"] == "image/svg+xml"
    assert icon["base64data"]
    assert yaml.safe_load((package / "ci.yaml").read_text()) == {"updateGraph": "semver-mode"}
    (package / "ci.yaml").write_text("reviewers: [somebody]\n")
    assert main(["operatorhub", str(tmp_path)]) == 0
    assert (package / "ci.yaml").read_text() == "reviewers: [somebody]\n"
