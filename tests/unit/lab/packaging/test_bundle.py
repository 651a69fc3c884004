"""The OLM bundle: made of the manifests. test_catalog.py has what OLM's validators say of it."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from lab.packaging.bundle import DOCKERFILE, PACKAGE, bundle, main, read_sources
from lab.packaging.manifests import IMAGE
from memcached_operator import __version__

PROJECT = Path(__file__).parents[4]
COMMITTED = {
    str(path.relative_to(PROJECT)): path.read_text()
    for path in [*(PROJECT / "bundle").rglob("*"), PROJECT / DOCKERFILE]
    if path.is_file()
}
CSV = yaml.safe_load(COMMITTED[f"bundle/manifests/{PACKAGE}.clusterserviceversion.yaml"])


def test_the_committed_bundle_is_what_the_manifests_make() -> None:
    assert bundle(read_sources()) == COMMITTED, "run ./dev bundle"


def test_the_version_is_the_operator_s_and_the_oldest_kubernetes_the_chart_s() -> None:
    assert (CSV["metadata"]["name"], CSV["spec"]["version"]) == (f"{PACKAGE}.v{__version__}", __version__)
    chart = yaml.safe_load((PROJECT / "charts/memcached-operator/Chart.yaml").read_text())
    assert chart["kubeVersion"] == f">={CSV['spec']['minKubeVersion']}-0"


def test_each_install_mode_is_supported() -> None:
    assert {each["type"] for each in CSV["spec"]["installModes"] if each["supported"]} == {
        *("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")
    }


def test_the_permissions_are_those_of_the_role_and_none_is_cluster_wide() -> None:
    install = CSV["spec"]["install"]["spec"]
    [granted] = install["permissions"]
    assert granted["rules"] == yaml.safe_load((PROJECT / "manifests/rbac/role.yaml").read_text())["rules"]
    # OLM turns permissions into a ClusterRole where the OperatorGroup means all namespaces.
    assert "clusterPermissions" not in install


def test_another_image_takes_the_place_of_the_operator_s_everywhere() -> None:
    other = "registry.example.com/tools/memcached-operator@sha256:" + "0" * 64
    files = bundle(read_sources(), image=other)
    assert not any(IMAGE in text for text in files.values())
    csv = yaml.safe_load(files[f"bundle/manifests/{PACKAGE}.clusterserviceversion.yaml"])
    [deployment] = csv["spec"]["install"]["spec"]["deployments"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == csv["metadata"]["annotations"]["containerImage"] == other
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
