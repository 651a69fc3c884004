"""The machine's own settings of pip, to be lent to the step of an image's build that runs pip.

Most machines have none. Where packages come from a mirror, or by a proxy with a certificate of its own, pip's files and
variables say so, and a container knows nothing of them. They are handed over as build secrets: files that are there
for one step and are in no layer.
"""

import configparser
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

# What reaches another file system; a path, as `find-links` may be one, would not.
_KEYS = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "default-timeout", "retries", "cert")
# Read in this order by what pip fetches with, where pip itself is told of no certificate.
_CERTIFICATE_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
# Where a secret is, by its id, unless a Dockerfile says otherwise.
_SECRETS = "/run/secrets"


def secrets(
    folder: Path, environment: Mapping[str, str] = os.environ, files: Sequence[Path] | None = None
) -> dict[str, Path]:
    """The files to lend, by the ids that the Dockerfile has for them; none where pip has no such setting.

    Args:
        folder: where they are written.
        files: pip's own, where they are not in the places where it looks.
    """
    settings = effective(_files(environment) if files is None else files, environment)
    found = {}
    if certificate := settings.pop("cert", None):
        found["pip-cert"] = Path(certificate)
        settings["cert"] = f"{_SECRETS}/pip-cert"
    if settings:
        found["pip-conf"] = folder / "pip.conf"
        found["pip-conf"].touch(mode=0o600)  # an address may hold a password
        lines = [f"{key} = {value.replace(chr(10), chr(10) + '    ')}" for key, value in settings.items()]
        found["pip-conf"].write_text("\n".join(["[global]", *lines, ""]))
    return found


def effective(files: Sequence[Path], environment: Mapping[str, str]) -> dict[str, str]:
    """Read pip's settings: its files, of which a later one overrides, and its variables, which override them all."""
    settings: dict[str, str] = {}
    for path in files:
        parser = configparser.RawConfigParser()
        parser.read(path)
        for section in ("global", "install"):
            if parser.has_section(section):
                settings |= {key: value for key, value in parser.items(section) if key in _KEYS and value}
    for key in _KEYS:
        if value := environment.get(f"PIP_{key.upper().replace('-', '_')}"):
            settings[key] = value
    for name in _CERTIFICATE_VARIABLES:
        if "cert" not in settings and environment.get(name):
            settings["cert"] = environment[name]
    return settings


def _files(environment: Mapping[str, str]) -> list[Path]:
    """List pip's files on Linux (https://pip.pypa.io/en/stable/topics/configuration/#location), the strongest last."""
    home = Path(environment.get("HOME") or Path.home())
    own = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    shared = [Path(folder) / "pip" for folder in (environment.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":")]
    folders = [*reversed(shared), Path("/etc"), home / ".pip", own / "pip"]
    named = environment.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return []
    return [folder / "pip.conf" for folder in folders] + ([Path(named)] if named else [])
