"""Clients of auto discovery as they are published, each built into a program that is a load on its servers.

A program takes the endpoint as host:port and runs until its standard input ends. It prints a line for each failure.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeAlias

from lab.cache import BuildError
from lab.programs.go import compile_module
from tests.unit.kubectl_memcached.owners.record import HERE as GO_MODULE

_HERE: Final = Path(__file__).parent
_JAVA_CLIENT: Final = "com.amazonaws:elasticache-java-cluster-client:1.2.0"
_JAVA_SHA256: Final = "0cf3b2f6235049542fba6dc9023b1a756cc5f309cc081dd29ad7633813d6c604"

Command: TypeAlias = Sequence[str | Path]


def _run(*command: str | Path, folder: Path) -> None:
    if shutil.which(command[0]) is None:
        raise BuildError(f"no {command[0]} on the PATH")
    if subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False).returncode != 0:
        raise BuildError(f"{command[0]} failed, see above")


def emcache(_: Path) -> Command:
    """The client of that name, which is installed here."""
    return [sys.executable, _HERE / "follow_emcache.py"]


def django(_: Path) -> Command:
    """django-elastipymemcache, which is installed here."""
    return [sys.executable, _HERE / "follow_django.py"]


def thanos(folder: Path) -> Command:
    """Thanos' client, whose module is that of another test."""
    compile_module(GO_MODULE, folder / "follow", package=str(_HERE / "follow.go"), stamps={})
    return [folder / "follow"]


def memcached_elasticache(folder: Path) -> Command:
    """memcached-elasticache of npm, by its lock file."""
    for name in ("package.json", "package-lock.json", "follow.js"):
        shutil.copy(_HERE / name, folder)
    _run("npm", "ci", "--ignore-scripts", folder=folder)
    return ["node", folder / "follow.js"]


def aws_java(folder: Path) -> Command:
    """AWS' client for Java, one archive that needs no other."""
    # A JDK, which runs a source.
    _run("javac", "--version", folder=folder)
    plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
    _run("mvn", "-B", "-q", plugin, f"-Dartifact={_JAVA_CLIENT}", f"-DoutputDirectory={folder}", folder=folder)
    (archive,) = folder.glob("*.jar")
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == _JAVA_SHA256
    return ["java", "-cp", archive, _HERE / "Follow.java"]
