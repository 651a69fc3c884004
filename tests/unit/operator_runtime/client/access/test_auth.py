"""Which of the places that name an API server wins, and what is said when none does."""

from __future__ import annotations

import pwd
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from operator_runtime.client.access.auth import NoClusterAccess, load_access

IN_POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def write_kubeconfig(path: Path, server: str, context: str = "main") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"current-context: {context}\n"
        f"contexts: [{{name: {context}, context: {{cluster: at-{server}, user: u, namespace: ns-{context}}}}}]\n"
        f"clusters: [{{name: at-{server}, cluster: {{server: 'https://{server}'}}}}]\n"
        "users: [{name: u, user: {token: t}}]\n"
    )
    return path


@pytest.fixture
def everything(tmp_path: Path) -> dict[str, str]:
    """A home with a kubeconfig, two files for KUBECONFIG, and the folder of a pod's service account."""
    write_kubeconfig(tmp_path / ".kube/config", "home")
    write_kubeconfig(tmp_path / "first", "first")
    write_kubeconfig(tmp_path / "second", "second", "other")
    write_kubeconfig(tmp_path / "flag", "flag")
    (tmp_path / "sa").mkdir()
    (tmp_path / "sa/token").write_text("pod-token\n")
    (tmp_path / "sa/ca.crt").write_text("pem")
    return {"HOME": str(tmp_path), "KUBECONFIG": f"{tmp_path}/first:{tmp_path}/gone:{tmp_path}/second", **IN_POD}


def without(environ: dict[str, str], *names: str) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name not in names}


@pytest.mark.parametrize(
    ("kubeconfig", "context", "unset", "server"),
    [
        ("flag", None, (), "https://flag"),
        (None, None, (), "https://first"),
        (None, None, ("KUBECONFIG",), "https://10.96.0.1:443"),
        (None, None, ("KUBECONFIG", *IN_POD), "https://home"),
        (None, "other", (), "https://second"),
        # A context exists in kubeconfigs only.
        (None, "main", ("KUBECONFIG",), "https://home"),
    ],
    ids=["flag", "KUBECONFIG", "pod", "home", "context of a later file", "context in a pod"],
)
@pytest.mark.parametrize("empty", [False, True])
def test_the_most_explicit_place_wins_and_what_is_empty_is_unset(
    everything: dict[str, str],
    tmp_path: Path,
    kubeconfig: str | None,
    context: str | None,
    unset: Sequence[str],
    server: str,
    empty: bool,
) -> None:
    environ = without(everything, *unset) | ({"KUBECONFIG": ""} if empty and "KUBECONFIG" in unset else {})
    path = kubeconfig and str(tmp_path / kubeconfig)
    access = load_access(kubeconfig=path, context=context, service_account_dir=tmp_path / "sa", environ=environ)
    assert access.server == server


@pytest.mark.parametrize("missing", ["token", "ca.crt"])
def test_half_a_service_account_is_none(everything: dict[str, str], tmp_path: Path, missing: str) -> None:
    (tmp_path / "sa" / missing).unlink()
    access = load_access(service_account_dir=tmp_path / "sa", environ=without(everything, "KUBECONFIG"))
    assert access.server == "https://home"


LONG = "/" + "a" * 300


@pytest.mark.parametrize(
    ("kubeconfig", "environ", "message"),
    [
        (None, {}, r"KUBECONFIG is not set.*no file .*/sa/token.*KUBERNETES_SERVICE_HOST is not set"),
        (None, {}, r"no file .*/\.kube/config.*Give --kubeconfig"),
        ("nowhere", {}, "--kubeconfig nowhere: no such file"),
        ("~no-such-user/config", {}, "--kubeconfig ~no-such-user/config: what ~ stands for is not known here"),
        (None, {"KUBECONFIG": "/nowhere:/else"}, "KUBECONFIG=/nowhere:/else: none of these files exists"),
        (LONG, {}, "cannot be read .File name too long.; check its path"),
        (None, {"KUBECONFIG": LONG}, "cannot be read .File name too long.; check its path"),
        (".", {}, "cannot be read .Is a directory.; check its path"),
        (None, {"HOME": LONG}, "cannot be read .File name too long.; check its path"),
    ],
)
def test_what_is_not_there_is_told_with_what_was_tried_and_the_remedy(
    tmp_path: Path, kubeconfig: str | None, environ: dict[str, str], message: str
) -> None:
    with pytest.raises(NoClusterAccess, match=rf"(?s){message}"):
        load_access(
            kubeconfig=kubeconfig, service_account_dir=tmp_path / "sa", environ={"HOME": str(tmp_path)} | environ
        )


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a container's user id that is not in its /etc/passwd."""

    def unknown(_: int) -> None:
        raise KeyError("uid not found")

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", unknown)


@pytest.mark.usefixtures("homeless")
def test_no_home_is_no_hindrance_where_none_is_needed(everything: dict[str, str], tmp_path: Path) -> None:
    assert load_access(service_account_dir=tmp_path / "sa", environ=IN_POD).server == "https://10.96.0.1:443"
    access = load_access(kubeconfig=str(tmp_path / "flag"), environ={})
    assert access.server == "https://flag"
    assert access.description == f"context main of {tmp_path}/flag"


@pytest.mark.usefixtures("homeless")
def test_no_home_is_told_where_one_is_needed(tmp_path: Path) -> None:
    with pytest.raises(NoClusterAccess, match=r"HOME is not set, and this user has no home.* Give --kubeconfig PATH"):
        load_access(service_account_dir=tmp_path, environ={})
    with pytest.raises(NoClusterAccess, match="--kubeconfig ~/config: what ~ stands for is not known here; give the"):
        load_access(kubeconfig="~/config", environ={})


def test_description_and_namespace_are_those_of_the_context(everything: dict[str, str], tmp_path: Path) -> None:
    access = load_access(context="other", environ=everything)
    assert access.description == "context other of ~/second"
    assert access.namespace == "ns-other"


def test_a_pod_loads_no_yaml_and_nobody_loads_the_python_client(everything: dict[str, str], tmp_path: Path) -> None:
    program = """if True:
        import sys
        from pathlib import Path
        from operator_runtime.client.access.auth import load_access
        home = Path(sys.argv[1])
        pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
        load_access(service_account_dir=home / "sa", environ=pod)
        assert "yaml" not in sys.modules, "yaml in a pod"
        load_access(environ={"HOME": str(home)})
        assert "yaml" in sys.modules, "the kubeconfig was not read"
        assert "kubernetes_asyncio" not in sys.modules, "kubernetes_asyncio"
    """
    command = [sys.executable, "-c", program, str(tmp_path)]
    outcome = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert outcome.returncode == 0, outcome.stderr
