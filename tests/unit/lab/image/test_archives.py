import json
import os
import tarfile
from pathlib import Path

import pytest

from lab.image.archives import Config, write

CONFIG = Config(architecture="amd64", command=["memcached"], user="11211", environment={"PATH": "/bin"})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Files as packages unpack them."""
    root = tmp_path / "root"
    (root / "usr" / "bin").mkdir(parents=True)
    (root / "bin").symlink_to("usr/bin")
    program = root / "usr" / "bin" / "su"
    program.write_text("#!\n")
    program.chmod(0o4755)
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)
    return root


def _layer(archive: Path) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(archive) as outer:
        (manifest,) = json.load(_file(outer, "manifest.json"))
        (layer,) = manifest["Layers"]
        with tarfile.open(fileobj=_file(outer, layer)) as inner:
            return {entry.name: entry for entry in inner}


def _file(archive: tarfile.TarFile, name: str):  # type: ignore[no-untyped-def]
    found = archive.extractfile(name)
    assert found is not None
    return found


def test_links_and_modes_stay_but_not_the_permission_to_run_as_another(root: Path, tmp_path: Path) -> None:
    write(root, tmp_path / "image.tar", "memcached:1", CONFIG)
    layer = _layer(tmp_path / "image.tar")
    assert layer["bin"].issym()
    assert layer["bin"].linkname == "usr/bin"
    assert layer["tmp"].mode == 0o1777
    assert layer["usr/bin/su"].mode == 0o755
    assert {(entry.uid, entry.gid) for entry in layer.values()} == {(0, 0)}


def test_the_same_files_of_another_time_are_the_same_bytes(root: Path, tmp_path: Path) -> None:
    write(root, tmp_path / "one.tar", "memcached:1", CONFIG)
    os.utime(root / "usr" / "bin" / "su", (1, 1))
    write(root, tmp_path / "two.tar", "memcached:1", CONFIG)
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.tar", "root", "two.tar"]
