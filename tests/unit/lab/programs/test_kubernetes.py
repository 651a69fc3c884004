from pathlib import Path

import pytest

from lab.cache import BuildError
from lab.programs.kubernetes import MODULE_DIR, bin_dir, cache_key, kubernetes_version

GO_MOD = b"module lab\n\ngo 1.26.0\n\nrequire (\n\tk8s.io/kubernetes v1.36.3\n)\n"
FILES = {"go.mod": GO_MOD, "go.sum": b"sums", "main.go": b"package main"}


def test_the_version_is_that_of_go_mod() -> None:
    assert kubernetes_version(GO_MOD.decode()) == "v1.36.3"


def test_a_go_mod_without_kubernetes_is_refused_by_name() -> None:
    with pytest.raises(BuildError, match="k8s"):
        kubernetes_version("module lab\n")


def test_the_cache_key_names_the_version_and_not_the_order_of_the_files() -> None:
    assert cache_key("kubernetes", FILES).startswith("kubernetes-v1.36.3-")
    assert cache_key("kubernetes", FILES) == cache_key("kubernetes", dict(reversed(FILES.items())))


@pytest.mark.parametrize("changed", sorted(FILES))
def test_a_change_of_any_file_is_another_cache_key(changed: str) -> None:
    changed_files = FILES | {changed: FILES[changed] + b"\n// more\n"}
    assert cache_key("kubernetes", changed_files) != cache_key("kubernetes", FILES)


def test_bytes_that_move_between_files_are_another_cache_key() -> None:
    moved = FILES | {"go.sum": b"sum", "main.go": b"spackage main"}
    assert cache_key("kubernetes", moved) != cache_key("kubernetes", FILES)


def test_the_programs_lie_in_the_user_s_cache_outside_the_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert bin_dir().parent == tmp_path / "memcached-operator" / "lab"
    assert not bin_dir().is_relative_to(MODULE_DIR)
