"""A stranger's look at a release: from the registry, the files and the public key alone.

What is not as the key's owner made it is refused by the programs that a stranger has: cosign, Helm, sha256sum.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.programs.helm import helm
from lab.release import parts
from lab.release.signatures import PROVENANCE, SBOM, attested, signature_of, verify_file, verify_image

_TYPES = (
    *("application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json"),
    *("application/vnd.oci.image.manifest.v1+json", "application/vnd.docker.distribution.manifest.v2+json"),
)
_TIMEOUT_S = 30.0


class Refused(Exception):
    """Something is not as it was released; the message says what. Programs have their own errors for signatures."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What was verified.

    Attributes:
        image: by its digest.
        commit: of which it was made.
        contents: names and versions of what each machine's image has.
        chart: the packed chart, as the registry has it.
    """

    image: str
    commit: str
    contents: dict[str, dict[str, str]]
    chart: Path


def look(host: str, name: str, version: str, files: Path, public: Path, work: Path) -> Looked:
    """Verify a release.

    Args:
        host: the registry on loopback.
        name: the image's, there.
        files: the folder with the release's files.
        public: the key's public half, from another place than these.
        work: a folder for what is pulled.

    Raises:
        Refused: something is not as it was released.
        ToolError: a signature is missing, or another's.
    """
    digest, index = manifest_of(host, name, version)
    image = f"{host}/{name}@{digest}"
    verify_image(public, image)
    made = attested(public, image, PROVENANCE)["buildDefinition"]
    contents = {}
    for each in index["manifests"]:
        machine = f"{host}/{name}@{each['digest']}"
        verify_image(public, machine)
        listed = attested(public, machine, SBOM)["components"]
        contents[each["platform"]["architecture"]] = {part["name"]: part.get("version", "") for part in listed}
    verify_sums(files, public)
    return Looked(
        image,
        made["externalParameters"]["commit"],
        contents,
        pulled_chart(host, f"charts/{name}", version, public, work, image),
    )


def pulled_chart(host: str, name: str, version: str, public: Path, work: Path, image: str) -> Path:
    """Pull the chart by Helm, verify it by its digest, and that it installs the image.

    Raises:
        Refused: it is not what its signed manifest names, or installs another image.
        ToolError: it is not signed.
    """
    digest, manifest = manifest_of(host, name, version)
    verify_image(public, f"{host}/{name}@{digest}")
    helm("pull", f"oci://{host}/{name}", f"--version={version}", f"--destination={work}", "--plain-http")
    chart = work / f"{name.rpartition('/')[2]}-{version}.tgz"
    if f"sha256:{parts.sha256(chart)}" not in {each["digest"] for each in manifest["layers"]}:
        raise Refused(f"{chart.name} is not the chart that its manifest names")
    found = parts.values_of(chart)["image"]
    if f"{found['repository']}@{found['digest']}" != image:
        raise Refused(f"{chart.name} installs {found}, and not {image}")
    return chart


def verify_sums(files: Path, public: Path) -> None:
    """Verify all files by the signed list of their digests, and each by its own signature.

    Raises:
        Refused: one has another content.
        ToolError: the list or a file is not signed.
    """
    listed = files / parts.SUMS
    verify_file(public, listed)
    checked = subprocess.run(
        ["sha256sum", "--check", "--strict", "--quiet", listed.name],
        cwd=files,
        capture_output=True,
        text=True,
        check=False,
    )
    if checked.returncode != 0:
        raise Refused(checked.stdout.strip() or checked.stderr.strip())
    named = set(re.findall(r"^\S+  (.+)$", listed.read_text(), re.MULTILINE))
    there = {each.name for each in files.iterdir()} - {signature_of(each).name for each in files.iterdir()}
    if there - {parts.SUMS} != named:
        raise Refused(f"{listed.name} names other files than there are: {sorted(named ^ (there - {parts.SUMS}))}")
    for name in named:
        verify_file(public, files / name)


def manifest_of(host: str, name: str, reference: str) -> tuple[str, Any]:
    """The digest of a manifest or an index, computed from its bytes, and what is in it."""
    address = f"http://{host}/v2/{name}/manifests/{reference}"
    request = urllib.request.Request(address, headers={"Accept": ", ".join(_TYPES)})
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
        body = answer.read()
    return f"sha256:{hashlib.sha256(body).hexdigest()}", json.loads(body)
