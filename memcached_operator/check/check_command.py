"""`memcached-operator check`: checks one thing after the other, and reports how to correct what is not as it must be.

The order is that in which a person mends: the server, its release, the CRD, namespaces and the account, permissions,
and whether the user who runs it may install what is missing. Nothing is written; reviews are answered and never stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import orjson

from memcached_operator import __version__
from memcached_operator.api.crd import memcached_crd
from memcached_operator.api.names import GROUP, VERSION
from memcached_operator.check import crd_differences, installing
from memcached_operator.check.findings import Finding, Verdict, all_ok, as_text, findings_json
from memcached_operator.check.required_permissions import (
    RequiredPermission,
    Scope,
    judge_permission,
    required_permissions,
)
from memcached_operator.check.reviews import Reviews, account_name, lacking_of, own_name
from memcached_operator.check.version import judge_version
from memcached_operator.settings import Settings
from operator_runtime.cache.store import ObjectKey
from operator_runtime.client.access.auth import ClusterAccess, NoClusterAccess
from operator_runtime.client.api_client import ApiClient
from operator_runtime.client.errors import (
    AuthenticationUnavailable,
    Forbidden,
    KubeError,
    MalformedAnswer,
    NotFound,
    Unauthorized,
    Unreachable,
)
from operator_runtime.client.resources import CRDS, Resource
from operator_runtime.election.elections import ElectionError, lock_of
from operator_runtime.from_settings import cluster_access, watched_namespaces
from operator_runtime.process.flags import DONE, printed

NOT_OK: Final = 1

NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
SERVICE_ACCOUNTS: Final = Resource("", "v1", "serviceaccounts", "ServiceAccount")


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """Options of the command line.

    Attributes:
        account: the ServiceAccount that the operator has or will have; None: the user who runs the command.
    """

    settings: Settings
    account: ObjectKey | None = None
    output: Literal["text", "json"] = "text"


def run(options: CheckOptions) -> int:
    """Print what was found; 0 if all is well, 1 if anything is to be done."""
    findings = asyncio.run(check(options))
    printed(findings_json(findings) if options.output == "json" else as_text(findings))
    return DONE if all_ok(findings) else NOT_OK


async def check(options: CheckOptions) -> list[Finding]:
    """Return all findings. What only a server could answer is left out."""
    try:
        access = cluster_access(options.settings)
    except NoClusterAccess as error:
        return [Finding("server", Verdict.WRONG, str(error))]  # the message ends with the remedy
    user_agent = f"{options.settings.operator_name}-check/{__version__}"
    async with ApiClient(access, user_agent=user_agent, timeout_s=options.settings.request_timeout_s) as client:
        return await _Checks(options, access, client).findings()


class _Checks:
    """One run against one server."""

    def __init__(self, options: CheckOptions, access: ClusterAccess, client: ApiClient) -> None:
        self._settings = options.settings
        self._account = options.account
        self._access = access
        self._client = client
        # Where the operator runs: a pod of that account, or here.
        self._in_pod = access.in_pod or options.account is not None
        self._home = options.account.namespace if options.account is not None else access.namespace

    async def findings(self) -> list[Finding]:
        try:
            who = await own_name(self._client)
        except KubeError as error:
            return [self._no_server(error)]
        as_whom = f" as {who}" if who else ""
        server = Finding("server", Verdict.OK, f"{self._access.server}{as_whom}, by {self._access.description}")
        version = await self._or_unknown("version", self._version())
        watched = watched_namespaces(self._settings.watch_namespaces, self._home)
        crd = await self._or_unknown("crd", self._definition(watched))
        scope, election = self._scope(watched)
        found = [server, version, crd, *await self._missing_namespaces(watched), *election]
        if self._account is None:
            return [*found, *await self._permissions(scope, who)]
        account = await self._or_unknown("account", self._service_account(self._account, watched))
        # Where there is no account, an install brings all its permissions.
        rules = account.verdict is not Verdict.MISSING
        permissions = await self._permissions(scope, account_name(self._account), rule_remedy=rules)
        mine = Reviews(self._client)

        async def judged(required: RequiredPermission) -> Finding:
            return installing.judge_install(required, await mine.granted(required))

        desired = [*installing.definition_permissions(scope)] if crd.verdict is not Verdict.OK else []
        if not all_ok([account, *permissions]):
            desired += installing.install_permissions(scope, self._account.namespace, rbac_only=rules)
        install = await self._each("install", dict.fromkeys(desired), judged)
        if not all_ok([account, *permissions]):
            install.append(
                await self._or_unknown("install", _granting(mine, scope, self._account.namespace, rbac_only=rules))
            )
        return [*found, account, *permissions, *install]

    def _no_server(self, error: KubeError) -> Finding:
        place = f"{self._access.server}, by {self._access.description}"
        match error:
            case Unauthorized():
                remedy = "log in again, or name another user's context with --context"
            case AuthenticationUnavailable():
                remedy = "correct the credential that the message names"
            case Unreachable() | MalformedAnswer():
                remedy = (
                    "check that the cluster is up and that this is the address of its API server; other contexts: "
                    "--context"
                )
            case _:
                remedy = "check the API server"
        return Finding("server", Verdict.WRONG, f"{place}: {error}", remedy)

    async def _version(self) -> Finding:
        return judge_version(await self._client.request("GET", "/version"))

    async def _definition(self, watched: tuple[str, ...]) -> Finding:
        try:
            live = _decoded(await self._client.get(CRDS, None, crd_differences.NAME))
        except NotFound:
            return crd_differences.absent(watched)
        except Forbidden:
            return await self._published_definition(watched)
        return crd_differences.judge_definition(live, memcached_crd(), watched)

    async def _published_definition(self, watched: tuple[str, ...]) -> Finding:
        """Check the definition by what every authenticated client may read."""
        path = f"/apis/{GROUP}/{VERSION}"
        try:
            await self._client.request("GET", path)
        except NotFound:
            return crd_differences.absent(watched)
        document = _decoded(await self._client.request("GET", f"/openapi/v3{path}"))
        found = crd_differences.published_differences(document, memcached_crd())
        if found is None:
            return Finding(
                "crd",
                Verdict.UNKNOWN,
                f"{crd_differences.NAME}: the API server has not published it yet",
                "try again in some seconds",
            )
        if differing := tuple(found):
            return crd_differences.differing_fields(differing, watched)
        return Finding(
            "crd",
            Verdict.OK,
            f"{crd_differences.NAME} is served with this release's fields (columns and rules of names are not"
            " compared: that takes the permission to get customresourcedefinitions.apiextensions.k8s.io)",
        )

    async def _missing_namespaces(self, watched: tuple[str, ...]) -> list[Finding]:
        """List missing namespaces; not one that may not be read: the operator need not read it either."""
        found = []
        home = (self._account.namespace,) if self._account is not None else ()
        for name in dict.fromkeys((*watched, *home)):
            try:
                await self._client.get(NAMESPACES, None, name)
            except NotFound:
                # The install for the whole cluster brings its own, and so does what is built on it.
                brought = name in home and name == installing.HOME and watched != home
                remedy = installing.command(watched, name) if brought else f"kubectl create namespace {name}"
                found.append(Finding("namespace", Verdict.MISSING, f"{name} does not exist", remedy))
            except Forbidden:
                pass
            except KubeError as error:
                found.append(_unknown("namespace", error))
        return found

    def _scope(self, watched: tuple[str, ...]) -> tuple[Scope, tuple[Finding, ...]]:
        """Return the operator's scope, and the findings about its election."""
        settings = self._settings
        scope = Scope(
            watched,
            own_pod=self._home if self._in_pod and not settings.operator_image else None,
            secure_metrics=settings.metrics_secure and settings.metrics_bind_address != "0",
            server_credentials=settings.server_credentials,
        )
        if not settings.leader_elect:
            return scope, ()
        try:
            lock = lock_of(settings, own=self._home, in_pod=self._in_pod)
        except ElectionError as error:  # the message ends with the remedy
            return scope, (Finding("election", Verdict.WRONG, str(error)),)
        if lock is None:
            return scope, (Finding("election", Verdict.OK, "outside a pod, leader election for life is skipped"),)
        return replace(scope, election=settings.leader_elect_mode, lock=lock), ()

    async def _service_account(self, account: ObjectKey, watched: tuple[str, ...]) -> Finding:
        try:
            await self._client.get(SERVICE_ACCOUNTS, account.namespace, account.name)
        except NotFound:
            remedy = f"install the operator: {installing.command(watched, account.namespace)}"
            return Finding("account", Verdict.MISSING, f"ServiceAccount {account} does not exist", remedy)
        return Finding("account", Verdict.OK, f"ServiceAccount {account}")

    async def _permissions(self, scope: Scope, subject: str, *, rule_remedy: bool = True) -> list[Finding]:
        reviews = Reviews(self._client, self._account)

        async def judged(required: RequiredPermission) -> Finding:
            return judge_permission(required, await reviews.granted(required), subject, rule_remedy=rule_remedy)

        return await self._each("permission", required_permissions(scope), judged)

    async def _each(
        self,
        check: str,
        desired: Iterable[RequiredPermission],
        judged: Callable[[RequiredPermission], Awaitable[Finding]],
    ) -> list[Finding]:
        return await asyncio.gather(*(self._or_unknown(check, judged(each), str(each)) for each in desired))

    async def _or_unknown(self, check: str, finding: Awaitable[Finding], what: str = "") -> Finding:
        try:
            return await finding
        except KubeError as error:
            return _unknown(check, error, what)


async def _granting(mine: Reviews, scope: Scope, home: str, *, rbac_only: bool) -> Finding:
    """Check that the user who runs the command may give the operator its permissions."""
    lacking: list[RequiredPermission] = []
    if await lacking_of(mine, installing.escalation_permissions(scope, home, rbac_only=rbac_only)):
        lacking = await lacking_of(mine, installing.granted_by_install(scope, home, rbac_only=rbac_only))
    return installing.judge_granting(lacking, scope, home)


def _unknown(check: str, error: KubeError, what: str = "") -> Finding:
    remedy = "ask an administrator for the permission" if isinstance(error, Forbidden) else "try again"
    return Finding(check, Verdict.UNKNOWN, f"{what}: {error}" if what else str(error), remedy)


def _decoded(answer: bytes) -> dict[str, Any]:
    try:
        document: dict[str, Any] = orjson.loads(answer)
    except orjson.JSONDecodeError as error:
        raise MalformedAnswer(f"not JSON: {error}") from None
    return document
