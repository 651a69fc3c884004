"""Images of one layer, written without a builder: a folder becomes what `docker load` and `ctr images import` take.

The format is that of `docker save`: a tar of layers, a configuration, and ``manifest.json``
(https://github.com/moby/docker-image-spec/blob/main/spec.md). The same folder makes the same bytes, everything in it
belongs to root, and no file of it can change who runs it.
"""

import hashlib
import io
import json
import stat
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_NO_SET_ID = ~(stat.S_ISUID | stat.S_ISGID)
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What a container of the image does unless it is told otherwise."""

    architecture: str
    """In Debian's words and in Go's, which agree where the lab runs: ``amd64``, ``arm64``."""
    command: Sequence[str] = ()
    entrypoint: Sequence[str] = ()
    user: str = ""
    working_dir: str = "/"
    environment: Mapping[str, str] = field(default_factory=dict)


def write(root: Path, target: Path, name: str, config: Config) -> None:
    """Write the files under ``root`` as an image.

    Args:
        target: the archive to write.
        name: the image's name with its tag, under which it is found when it has been loaded.
    """
    layer = target.with_name(f"{target.name}.layer")
    try:
        _write_layer(root, layer)
        digest = _sha256(layer)
        document = json.dumps(_document(config, digest), sort_keys=True).encode()
        image_id = hashlib.sha256(document).hexdigest()
        manifest = [{"Config": f"{image_id}.json", "RepoTags": [name], "Layers": [f"{digest}.tar"]}]
        with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as archive:
            _add_bytes(archive, f"{image_id}.json", document)
            _add_bytes(archive, "manifest.json", json.dumps(manifest).encode())
            with layer.open("rb") as content:
                archive.addfile(_entry(f"{digest}.tar", layer.stat().st_size), content)
    finally:
        layer.unlink(missing_ok=True)


def _write_layer(root: Path, target: Path) -> None:
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as layer:
        for path in sorted(root.rglob("*")):
            found = path.lstat()
            entry = tarfile.TarInfo(path.relative_to(root).as_posix())
            entry.mode = stat.S_IMODE(found.st_mode) & _NO_SET_ID
            if stat.S_ISLNK(found.st_mode):
                entry.type, entry.linkname = tarfile.SYMTYPE, str(path.readlink())
                layer.addfile(entry)
            elif stat.S_ISDIR(found.st_mode):
                entry.type = tarfile.DIRTYPE
                layer.addfile(entry)
            elif stat.S_ISREG(found.st_mode):
                entry.size = found.st_size
                with path.open("rb") as content:
                    layer.addfile(entry, content)


def _document(config: Config, layer_digest: str) -> dict[str, object]:
    return {
        "architecture": config.architecture,
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": {
            "User": config.user,
            "WorkingDir": config.working_dir,
            "Env": [f"{name}={value}" for name, value in config.environment.items()],
            "Entrypoint": list(config.entrypoint) or None,
            "Cmd": list(config.command) or None,
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_digest}"]},
        "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "lab/image/archives.py"}],
    }


def _entry(name: str, size: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o644
    return entry


def _add_bytes(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    archive.addfile(_entry(name, len(content)), io.BytesIO(content))


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()
