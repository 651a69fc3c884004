"""``./dev release``: everything of this version, made from a clean commit, pushed to a registry and signed.

``--check`` makes it for a registry on loopback, and looks at it as a stranger would.
"""

from __future__ import annotations

import argparse
import getpass
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lab import ROOT
from lab.cache import BuildError
from lab.image import builders, debian, images
from lab.image.builders import ImageError
from lab.packaging import bundle
from lab.programs.go_tools import ToolError
from lab.programs.helm import helm
from lab.release import parts
from lab.release.registry import Registry
from lab.release.signatures import PROVENANCE, SBOM, Key
from memcached_operator import __version__

MACHINES: Final = ("amd64", "arm64")
NAME: Final = "memcached-operator"
_QEMU: Final = {"amd64": "x86_64", "arm64": "aarch64"}


@dataclass(frozen=True, slots=True)
class Release:
    """A release that was made.

    Attributes:
        image: of all machines, by its digest.
        by_machine: the image of each, by its digest.
        chart: by its digest.
        bundle: OLM's, by its digest.
        folder: has the files.
    """

    commit: str
    image: str
    by_machine: dict[str, str]
    chart: str
    bundle: str
    folder: Path


def why_not() -> str | None:
    """Why no release can be made on this machine, or None."""
    try:
        builders.find(("buildah",))
    except ImageError as error:
        return str(error)
    foreign = [each for each in MACHINES if Path(f"/proc/sys/fs/binfmt_misc/qemu-{_QEMU[each]}").exists()]
    if len({*foreign, debian.architecture()}) < len(MACHINES):
        return "it does not run programs of other machines: install qemu-user-static, with binfmt_misc mounted"
    return None


def make(repository: str, key: Key, folder: Path) -> Release:
    """Make, push and sign everything of this version.

    Args:
        repository: the registry, with a path where it has one: `registry.example.com/team`.
        folder: gets the files; it is made.

    Raises:
        NotReleasable: the checkout has changes.
        ImageError, BuildError, ToolError: a program did not do its part.
    """
    commit, epoch_s = parts.commit()
    folder.mkdir(parents=True)
    by_machine = push_images(repository, epoch_s)
    image, builder = f"{repository}/{NAME}:{__version__}", builders.find(("buildah",))
    plain = repository.startswith("localhost")
    with tempfile.TemporaryDirectory(prefix="release-") as temporary:
        work = Path(temporary)
        apart, digest = builder.stored_in(work), work / "digest"
        apart.push_index(image, list(by_machine.values()), digest, _without_tls(repository))
        image = f"{repository}/{NAME}@{digest.read_text().strip()}"
        parts.bundle_folder(image, work)
        bundle_name = f"{repository}/{NAME}-bundle:{__version__}"
        bundle.build(apart, bundle_name, work, more=("--timestamp", str(epoch_s)))
        bundle_image = _pushed(apart, bundle_name)
        catalog = parts.catalog_file(work, bundle_image, folder)
    chart = parts.packed_chart(image, folder)
    chart_image = _pushed_chart(chart, repository)
    lists = {each: parts.contents(by_machine[each], each, folder, plain_http=plain) for each in MACHINES}
    provenance = parts.provenance(commit, f"{builder.name} on {os.uname().sysname} {os.uname().machine}", folder)
    for machine, listed in lists.items():
        key.attest(by_machine[machine], SBOM, listed)
    for each in (image, *by_machine.values()):
        key.attest(each, PROVENANCE, provenance)
    for each in (image, *by_machine.values(), chart_image, bundle_image):
        key.sign_image(each)
    notes = folder / "RELEASE_NOTES.md"
    notes.write_text(parts.notes((ROOT / "CHANGELOG.md").read_text(), __version__))
    files = [*parts.install_files(image, folder), *parts.packages(epoch_s, folder), chart, catalog, notes]
    files += [*lists.values(), provenance, *parts.plugin_files(folder)]
    for file in (*files, parts.sums(files, folder)):
        key.sign_file(file)
    return Release(commit, image, by_machine, chart_image, bundle_image, folder)


def push_images(repository: str, epoch_s: int) -> dict[str, str]:
    """Build the operator's image for each machine and push it; each by its digest."""
    found = {}
    for machine in MACHINES:
        with tempfile.TemporaryDirectory(prefix="release-image-") as store:
            builder = builders.find(("buildah",)).stored_in(Path(store))
            name = f"{repository}/{NAME}:{__version__}-{machine}"
            images.build_for(builder, name, machine, epoch_s=epoch_s)
            found[machine] = _pushed(builder, name)
    return found


def _pushed(builder: builders.Builder, name: str) -> str:
    """Push an image of a builder's store; its name by digest."""
    with tempfile.NamedTemporaryFile("r") as digest:
        builder.push(name, (f"--digestfile={digest.name}", *_without_tls(name)))
        return f"{name.rpartition(':')[0]}@{digest.read().strip()}"


def _pushed_chart(chart: Path, repository: str) -> str:
    more = ("--plain-http",) if repository.startswith("localhost") else ()
    said = helm("push", str(chart), f"oci://{repository}/charts", *more, variables=os.environ)
    digest = next(line.split()[-1] for line in (said.stdout + said.stderr).splitlines() if line.startswith("Digest:"))
    return f"{repository}/charts/{NAME}@{digest}"


def _without_tls(name: str) -> Sequence[str]:
    return ("--tls-verify=false",) if name.startswith("localhost") else ()


def main(arguments: Sequence[str]) -> int:
    """Run the command; the exit code."""
    parser = argparse.ArgumentParser(prog="./dev release", description=__doc__, allow_abbrev=False)
    parser.add_argument("--check", action="store_true", help="make it for a registry on loopback, and verify it")
    parser.add_argument("--registry", metavar="NAME", help="where to push, such as registry.example.com/team")
    parser.add_argument("--key", metavar="FOLDER", type=Path, help="with cosign.key and cosign.pub")
    parser.add_argument("--to", metavar="FOLDER", type=Path, default=ROOT / ".cache" / "release", help="for the files")
    options = parser.parse_args(arguments)
    if options.check:
        return subprocess.run([sys.executable, "-m", "pytest", "tests/release"], cwd=ROOT, check=False).returncode
    if options.registry and not options.key:
        parser.error("--registry needs --key FOLDER, with cosign.key and cosign.pub of `cosign generate-key-pair`")
    if options.to.exists():
        parser.error(f"--to {options.to} exists: remove it, or name another folder")
    try:
        with ExitStack() as stack:
            if options.registry:
                password = os.environ.get("COSIGN_PASSWORD")
                key = Key(options.key, getpass.getpass("Password of the key: ") if password is None else password)
                made = make(options.registry, key, options.to)
            else:
                work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="release-registry-")))
                registry = stack.enter_context(Registry(work))
                made = make(registry.host, Key(work, "trial").make(), options.to)
    except (parts.NotReleasable, ImageError, BuildError, ToolError) as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    where = "" if options.registry else ", which is gone: without --registry it was one on loopback, and a trial's key"
    print(f"{made.image} and its chart and bundle are in the registry{where}; the files are in {made.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
