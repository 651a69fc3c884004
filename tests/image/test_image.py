"""The operator's image: what is in it, what is not, and that it works as a pod of the manifests would run it."""

from __future__ import annotations

import json
import re
import socket
import ssl
import stat
import urllib.error
import urllib.request

import pytest
from packaging.markers import Marker
from packaging.utils import canonicalize_name

from lab.image import images
from memcached_operator import __version__
from memcached_operator.api.crd import memcached_crd_yaml
from operator_runtime.testing.waiting import DEADLINE_S, eventually
from tests.image.container import Image, contents
from tests.integration.conftest import ACCOUNT, ACCOUNT_NAMESPACE, memcached
from tests.kubectl_in_namespace import Kubectl
from tests.operator_process import PROJECT

# The first test may find no image yet, and building one takes minutes on a busy machine.
pytestmark = pytest.mark.timeout(900)

_APP = "app"
_STANDARD_LIBRARY = "usr/lib/python3.13"
# What of the standard library no operator imports.
_NOT_COMPILED = {"ensurepip", "pydoc_data", "test", "venv"}


def test_its_entrypoint_is_the_operator(image: Image) -> None:
    assert image.config["Entrypoint"] == ["python", "-m", "memcached_operator"]
    finished = image.run("--version")
    assert (finished.stdout, finished.returncode) == (f"memcached-operator {__version__}\n", 0)


def test_it_prints_the_crd_of_this_checkout(image: Image) -> None:
    assert image.run("crd").stdout == memcached_crd_yaml()


def test_its_user_is_a_number_that_is_not_root_s(image: Image) -> None:
    # A kubelet with runAsNonRoot refuses a name: it cannot see whose it is.
    assert image.config["User"] == "65532:65532"
    assert image.python("import os; print(os.getuid(), os.getgid())").split() == ["65532", "65532"]


def test_its_labels_say_what_it_is(image: Image) -> None:
    labels = {name.removeprefix("org.opencontainers.image."): text for name, text in image.config["Labels"].items()}
    assert labels["title"] == "memcached-operator"
    assert labels["version"] == __version__
    assert labels["licenses"] == "Apache-2.0"
    assert {"description", "revision", "source", "base.name"} <= labels.keys()
    assert {path.name for path in (image.root / "licenses").iterdir()} == {"LICENSE", "NOTICE"}


def test_its_name_is_the_one_of_the_manifests(image: Image) -> None:
    assert image.names == [f"localhost/memcached-operator:{__version__}"]


def test_it_is_as_small_as_the_documents_say(image: Image) -> None:
    bound = re.search(r"never more than (\d+) MB", " ".join((PROJECT / "docs" / "image.md").read_text().split()))
    assert bound is not None
    assert image.size / 1e6 <= int(bound[1])


@pytest.mark.parametrize(
    "program",
    ["pip", "pip3", "cc", "gcc", "ld", "as", "make", "sh", "bash", "dash", "busybox", "apt-get", "dpkg", "perl"],
)
def test_it_has_no_installer_compiler_or_shell(image: Image, program: str) -> None:
    folders = ("bin", "sbin", "usr/bin", "usr/sbin", "usr/local/bin", "usr/local/sbin")
    assert not [folder for folder in folders if (image.root / folder / program).exists()]


def test_it_carries_no_simulator_no_demo_no_testing_kit_and_no_pip(image: Image) -> None:
    names = ["kube_simulator", "memcached_operator.demo", "operator_runtime.testing", "pip"]
    assert image.python(f"import importlib.util as u; print([n for n in {names} if u.find_spec(n)])") == "[]\n"
    finished = image.run("demo")
    assert (finished.returncode, "the demo is not available" in finished.stdout) == (2, True)


def test_no_file_gives_privileges_to_its_user_and_all_belong_to_root(image: Image) -> None:
    wrong = []
    for path in image.root.rglob("*"):
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode):
            continue
        writable = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX
        if found.st_mode & (stat.S_ISUID | stat.S_ISGID) or writable or (found.st_uid, found.st_gid) != (0, 0):
            wrong.append(path.relative_to(image.root).as_posix())
    assert [path for path in wrong if path != "home/nonroot"] == []


def test_its_packages_are_those_of_the_lock_file_and_no_others(image: Image) -> None:
    code = "import importlib.metadata as m; print(*(f'{d.name}=={d.version}' for d in m.distributions()))"
    found = {_normal(pin) for pin in image.python(code).split()}
    lock = (PROJECT / "requirements-image.lock").read_text()
    pins = re.findall(r"^([\w.-]+==[^\s;\\]+)(?: ; ([^\\]+?))? \\$", lock, re.MULTILINE)
    assert found == {_normal(pin) for pin, marker in pins if not marker or Marker(marker).evaluate()}


def _normal(pin: str) -> str:
    name, _, version = pin.partition("==")
    return f"{canonicalize_name(name)}=={version}"


def test_every_extension_module_loads(image: Image) -> None:
    # Their debug information was cut off, after which a broken one would not load.
    names = {
        path.relative_to(image.root / _APP).as_posix().partition(".")[0].replace("/", ".")
        for path in (image.root / _APP).rglob("*.so")
    }
    assert len(names) > 10
    code = f"import importlib\nfor name in {sorted(names)!r}: importlib.import_module(name)\nprint('all')"
    assert image.python(code) == "all\n"


def test_every_module_is_compiled_for_its_python_and_never_looked_at_again(image: Image) -> None:
    magic = bytes.fromhex(image.python("import importlib.util; print(importlib.util.MAGIC_NUMBER.hex())"))
    missing, stale = [], []
    for library in (_APP, _STANDARD_LIBRARY):
        for path in (image.root / library).rglob("*.py"):
            inside = path.relative_to(image.root / library)
            if _NOT_COMPILED & set(inside.parts):
                continue
            compiled = path.parent / "__pycache__" / f"{path.stem}.cpython-313.pyc"
            if not compiled.is_file():
                missing.append(str(inside))
            # PEP 552: 1 in the flags is a hash of the source, and 2 beside it would have it checked.
            elif compiled.read_bytes()[:8] != magic + (1).to_bytes(4, "little"):
                stale.append(str(inside))
    assert (missing, stale) == ([], [])


def test_built_again_it_is_the_same_but_for_times(image: Image) -> None:
    first, second = (
        contents(images.operator_image(name)) for name in (images.IMAGE, "localhost/memcached-operator:again")
    )
    assert first.keys() == second.keys()
    assert [path for path in first if first[path] != second[path]] == []


@pytest.mark.cluster("simulator")
def test_it_does_its_work_without_a_privilege_or_a_file_of_its_own(image: Image, kubectl: Kubectl) -> None:
    account_dir = kubectl.cluster.service_account_dir(ACCOUNT_NAMESPACE, ACCOUNT)
    metrics, probes = _free_port(), _free_port()
    arguments = (
        "--all-namespaces",
        "--log-format=json",
        "--metrics-secure",
        f"--metrics-bind-address=127.0.0.1:{metrics}",
        f"--health-probe-bind-address=127.0.0.1:{probes}",
    )
    with image.start(*arguments, account_dir=account_dir, **kubectl.cluster.in_cluster_environment) as operator:
        kubectl.apply(memcached("in-a-container", 2))
        try:
            kubectl.wait_field("deployment/in-a-container", ".spec.replicas", 2)
            kubectl.wait_field("mcd/in-a-container", ".status.replicas", 2)
        except Exception:
            print(operator.log)
            raise
        assert eventually(lambda: _answer(f"http://127.0.0.1:{probes}/readyz"), lambda code: code == 200)
        # The certificate that it signs itself takes the extra `secure`.
        assert _answer(f"https://127.0.0.1:{metrics}/metrics") == 401
        operator.send("TERM")
        operator.wait()
        assert operator.returncode == 0, operator.log
        assert all(json.loads(line) for line in operator.log.splitlines())


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _answer(address: str) -> int:
    trusting = ssl.create_default_context()
    trusting.check_hostname = False
    trusting.verify_mode = ssl.CERT_NONE
    try:
        with urllib.request.urlopen(address, context=trusting, timeout=DEADLINE_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except OSError:
        return 0
