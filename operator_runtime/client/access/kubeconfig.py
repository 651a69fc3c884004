"""Kubeconfig files: their schema as far as it is used, and how several of them become one, as kubectl does it.

Why it is read here rather than by kubernetes-asyncio is in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import yaml

from operator_runtime.client.access.credentials import Discreet, NoClusterAccess
from operator_runtime.client.access.exec_plugin import InteractiveMode
from operator_runtime.client.json_depth import LEVELS


class Extension(msgspec.Struct, frozen=True):
    name: str
    extension: object = None


class Cluster(Discreet, frozen=True, rename="kebab"):
    server: str | None = None
    tls_server_name: str | None = None
    insecure_skip_tls_verify: bool | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    proxy_url: str | None = None
    extensions: tuple[Extension, ...] | None = None


class ExecVariable(Discreet, frozen=True):
    name: str
    value: str


class Exec(Discreet, frozen=True, rename="camel"):
    command: str
    api_version: str | None = None
    args: tuple[str, ...] | None = None
    env: tuple[ExecVariable, ...] | None = None
    install_hint: str | None = None
    provide_cluster_info: bool | None = None
    interactive_mode: InteractiveMode | None = None


class AuthProvider(msgspec.Struct, frozen=True):
    name: str = ""


class User(Discreet, frozen=True, rename="kebab"):
    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    token: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    username: str | None = None
    password: str | None = None
    exec: Exec | None = None
    auth_provider: AuthProvider | None = None
    impersonate: str | None = msgspec.field(default=None, name="as")


class Context(msgspec.Struct, frozen=True):
    cluster: str | None = None
    user: str | None = None
    namespace: str | None = None


# Three types: a key that belongs into another list is ignored, as kubectl does.
class _NamedCluster(msgspec.Struct, frozen=True):
    name: str
    cluster: Cluster | None = None


class _NamedUser(msgspec.Struct, frozen=True):
    name: str
    user: User | None = None


class _NamedContext(msgspec.Struct, frozen=True):
    name: str
    context: Context | None = None


class _File(msgspec.Struct, frozen=True, rename="kebab"):
    current_context: str | None = None
    clusters: tuple[_NamedCluster, ...] | None = None
    users: tuple[_NamedUser, ...] | None = None
    contexts: tuple[_NamedContext, ...] | None = None


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class KubeconfigEntry(Generic[T]):
    """A named entry of a file, to whose folder its paths are relative; `origin`: "user jane in ~/.kube/config"."""

    value: T
    file: Path
    origin: str

    def path(self, text: str) -> Path:
        return self.file.parent / text


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """One or several files, merged: the first file that has a name, or a current context, wins."""

    files: str
    current_context: str | None
    clusters: Mapping[str, KubeconfigEntry[Cluster]]
    users: Mapping[str, KubeconfigEntry[User]]
    contexts: Mapping[str, KubeconfigEntry[Context]]


def read_kubeconfigs(paths: Sequence[Path], *, home: Path | None) -> Kubeconfig:
    """Read and merge files, the first one before the others; `home`, where there is one, is written as ~ in messages.

    Raises NoClusterAccess where a file cannot be read or is not a kubeconfig.
    """
    current: str | None = None
    clusters: dict[str, KubeconfigEntry[Cluster]] = {}
    users: dict[str, KubeconfigEntry[User]] = {}
    contexts: dict[str, KubeconfigEntry[Context]] = {}
    labels = []
    for path in paths:
        file = path.absolute()
        label = f"~/{file.relative_to(home)}" if home is not None and file.is_relative_to(home) else str(path)
        labels.append(label)
        content = _read(file, label)
        current = current or content.current_context
        for cluster in content.clusters or ():
            origin = f"cluster {printable(cluster.name)} in {label}"
            clusters.setdefault(cluster.name, KubeconfigEntry(cluster.cluster or Cluster(), file, origin))
        for user in content.users or ():
            origin = f"user {printable(user.name)} in {label}"
            users.setdefault(user.name, KubeconfigEntry(user.user or User(), file, origin))
        for context in content.contexts or ():
            origin = f"context {printable(context.name)} of {label}"
            contexts.setdefault(context.name, KubeconfigEntry(context.context or Context(), file, origin))
    return Kubeconfig(", ".join(labels), current, clusters, users, contexts)


def printable(name: str) -> str:
    """A name as messages show it, in one line whatever it holds."""
    return name if name.isprintable() else repr(name)


_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_SafeLoader):  # type: ignore[misc]
    """YAML as kubectl reads it, with one kind of error for what PyYAML raises.

    A date is a text: PyYAML's own dates end in a ValueError where there is no such day.
    """

    levels = 0

    def descend_resolver(self, parent: yaml.Node | None, index: object) -> None:
        # Called upon each node that is begun. The one in C has no bound, and the process would end without a word.
        self.levels += 1
        if parent is not None and self.levels > LEVELS:
            raise yaml.composer.ComposerError(None, None, "nested too deeply", parent.start_mark)
        super().descend_resolver(parent, index)

    def ascend_resolver(self) -> None:
        self.levels -= 1
        super().ascend_resolver()

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError, TypeError):  # such as `!!int x`, or 5,000 digits
            raise yaml.constructor.ConstructorError(None, None, "no such value", node.start_mark) from None


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _SafeLoader.yaml_implicit_resolvers.items()
}


def _read(path: Path, label: str) -> _File:
    try:
        with path.open("rb") as file:
            content = yaml.load(file, Loader=_Loader)
        return msgspec.convert({} if content is None else content, _File)
    except OSError as error:
        raise NoClusterAccess(f"{label} cannot be read ({error.strerror}); check its path and permissions") from None
    except yaml.MarkedYAMLError as error:
        # The parser's own words quote the line, which may hold a secret. It may have a bound on levels, too (1,000 in
        # PyYAML 6.0.4), which it meets before `_Loader` does.
        mark = error.problem_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        what = f"not valid YAML of at most {LEVELS} levels"
        raise NoClusterAccess(f"{label}{where}: {what}; correct it there") from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise NoClusterAccess(f"{label}: not a text in YAML; give the path of a kubeconfig") from None
    except msgspec.ValidationError as error:
        raise NoClusterAccess(f"{label}: not a kubeconfig: {error}; correct it there") from None
