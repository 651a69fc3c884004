import pytest

from lab.programs.kubernetes import cache_key

GO_MOD = b"module lab\n\ngo 1.26.0\n\nrequire (\n\tk8s.io/kubernetes v1.36.3\n)\n"
FILES = {"go.mod": GO_MOD, "go.sum": b"sums", "main.go": b"package main"}


def test_the_cache_key_names_the_version_and_not_the_order_of_the_files() -> None:
    assert cache_key("kubernetes", FILES).startswith("kubernetes-v1.36.3-")
    assert cache_key("kubernetes", FILES) == cache_key("kubernetes", dict(reversed(FILES.items())))


@pytest.mark.parametrize("changed", sorted(FILES))
def test_a_change_of_any_file_is_another_cache_key(changed: str) -> None:
    changed_files = FILES | {changed: FILES[changed] + b"\n// more\n"}
    assert cache_key("kubernetes", changed_files) != cache_key("kubernetes", FILES)
