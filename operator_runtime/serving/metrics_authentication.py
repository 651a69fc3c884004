"""Access to metrics: the API server reports whose a token is (TokenReview), and what they may (SubjectAccessReview).

Times are kube-rbac-proxy's and controller-runtime's: an account is remembered for a minute, that it may for five
minutes, that it may not for half a minute.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from operator_runtime.client.errors import Forbidden, KubeError
from operator_runtime.client.response_identity import ExpectedReview
from operator_runtime.serving.responses import HttpResponse, text_response
from operator_runtime.serving.scrape import PATH

if TYPE_CHECKING:
    from aiohttp import web

    from operator_runtime.client.api_client import ApiClient

logger = logging.getLogger(__name__)

V = TypeVar("V")

ACCOUNT_S = 60.0
ALLOWED_S = 300.0
DENIED_S = 30.0
# Scrapers are few; a client that tries tokens must not fill the memory with them.
MAX_REMEMBERED = 256
# Requests with tokens that were invalid so far, while the API server reviews them: of one address a few scrapes
# at once, of all half of the server's connections, so that the others are there for tokens that are known.
MAX_UNKNOWN_OF_ADDRESS = 8
MAX_UNKNOWN = 32


class Account(msgspec.Struct, frozen=True, omit_defaults=True):
    """Account that a token belongs to, in the form of TokenReview and of SubjectAccessReview."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class _Status(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: Account = Account()
    allowed: bool = False


class _Review(msgspec.Struct, frozen=True):
    status: _Status = _Status()


class RememberedAnswers(Generic[V]):
    """Answers, each for a time of its own, and no more than `MAX_REMEMBERED` of them."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._answers: OrderedDict[bytes, tuple[float, V]] = OrderedDict()

    def get(self, key: bytes) -> V | None:
        """The answer, None when there is none or it is too old."""
        found = self._answers.get(key)
        if found is None or found[0] <= self._clock():
            return None
        return found[1]

    def __contains__(self, key: bytes) -> bool:
        """Report whether there was an answer, however old."""
        return key in self._answers

    def forget(self, key: bytes) -> None:
        self._answers.pop(key, None)

    def put(self, key: bytes, answer: V, seconds: float) -> V:
        """Remember an answer for so long, and give it back."""
        self._answers[key] = (self._clock() + seconds, answer)
        self._answers.move_to_end(key)
        if len(self._answers) > MAX_REMEMBERED:
            self._answers.popitem(last=False)
        return answer


class _TooManyUnknown(Exception):
    """Refusal of another unknown account: no more of them can wait."""


class MetricsAuthentication:
    """Lets those see the metrics who may `get` the non-resource URL of their path; see `refusal`.

    One review of an unknown token goes out at a time. A token that was valid before does not wait for unknown ones, is
    not forgotten for their sake, and few of these wait.

    Invariants:
        `_accounts` has tokens that were valid when last reviewed, `_nobodys` those that were not.
        `_unknown` counts by address the requests that wait for an answer about a token that is not in `_accounts`.
    """

    def __init__(self, client: ApiClient, *, paths: Iterable[str], clock: Callable[[], float] = time.monotonic) -> None:
        """
        Args:
            client: of the API server; it needs the permission to create both reviews.
            paths: where there are metrics. A client elsewhere must be one who may get /metrics to learn that nothing
                is there.
        """
        self._client = client
        self._paths = frozenset(paths)
        self._accounts = RememberedAnswers[Account](clock)
        self._nobodys = RememberedAnswers[bool](clock)
        self._permissions = RememberedAnswers[bool](clock)
        self._reviews = asyncio.Lock()
        self._reviews_of_unknown = asyncio.Lock()
        self._unknown: Counter[str] = Counter()
        self._reported = False

    async def refusal(self, request: web.BaseRequest) -> HttpResponse | None:
        """Return the response that refuses a request; None for those who may see the metrics.

        401 to a client that the API server does not know, 403 to one that may not, 429 to unknown clients while too
        many are reviewed, 503 while the API server cannot be reached.
        """
        token = _token(request.headers)
        if not token:
            return _UNAUTHORIZED
        try:
            account = await self._account(token, request.remote or "")
            if account is None:
                return _UNAUTHORIZED
            allowed = await self._may(account, request.path if request.path in self._paths else PATH)
        except _TooManyUnknown:
            return _TRY_LATER
        except (KubeError, msgspec.DecodeError) as error:
            self._complain(error)
            return text_response(503, "Service Unavailable\n")
        self._reported = False
        return None if allowed else text_response(403, "Forbidden\n")

    async def _account(self, token: str, address: str) -> Account | None:
        # Tokens are secrets: they are not kept.
        key = hashlib.sha256(token.encode()).digest()
        if (known := self._accounts.get(key)) is not None:
            return known
        if self._nobodys.get(key):
            return None
        async with self._reviews if key in self._accounts else self._as_unknown(address):
            if (known := self._accounts.get(key)) is not None:
                return known
            if self._nobodys.get(key):
                return None
            status = await self._review("authentication.k8s.io/v1", "TokenReview", {"token": token})
            if status.authenticated:
                return self._accounts.put(key, status.user, ACCOUNT_S)
            self._accounts.forget(key)
            self._nobodys.put(key, True, ACCOUNT_S)
            return None

    @asynccontextmanager
    async def _as_unknown(self, address: str) -> AsyncIterator[None]:
        """The turn of one that is not known to be valid; `_TooManyUnknown` where too many wait already."""
        if self._unknown[address] >= MAX_UNKNOWN_OF_ADDRESS or self._unknown.total() >= MAX_UNKNOWN:
            raise _TooManyUnknown
        self._unknown[address] += 1
        try:
            async with self._reviews_of_unknown:
                yield
        finally:
            self._unknown[address] -= 1
            if not self._unknown[address]:
                del self._unknown[address]

    async def _may(self, account: Account, url: str) -> bool:
        key = msgspec.json.encode((url, account), order="deterministic")
        if (known := self._permissions.get(key)) is not None:
            return known
        async with self._reviews:
            if (known := self._permissions.get(key)) is not None:
                return known
            # The names of a TokenReview's user, but for one.
            user = msgspec.structs.asdict(account)
            spec = {"user": user.pop("username"), **user, "nonResourceAttributes": {"path": url, "verb": "get"}}
            allowed = (await self._review("authorization.k8s.io/v1", "SubjectAccessReview", spec)).allowed
            return self._permissions.put(key, allowed, ALLOWED_S if allowed else DENIED_S)

    async def _review(self, api_version: str, kind: str, spec: dict[str, object]) -> _Status:
        expected = ExpectedReview(kind, spec)
        path = f"/apis/{api_version}/{kind.lower()}s"
        body = msgspec.json.encode({"apiVersion": api_version, "kind": kind, "spec": spec})
        answer = await self._client.request("POST", path, body=body, expected=expected)
        return msgspec.json.decode(answer, type=_Review).status

    def _complain(self, error: Exception) -> None:
        """Log the failure once, until reviews work again."""
        if self._reported:
            return
        self._reported = True
        remedy = (
            " Grant the operator's account create on tokenreviews.authentication.k8s.io and "
            "subjectaccessreviews.authorization.k8s.io, as the ClusterRole system:auth-delegator does."
            if isinstance(error, Forbidden)
            else ""
        )
        logger.warning(
            "cannot review access to metrics, so every scrape is refused: %s.%s",
            str(error).rstrip("."),
            remedy,
        )


_UNAUTHORIZED = HttpResponse(401, b"Unauthorized\n", headers={"WWW-Authenticate": "Bearer"})
_TRY_LATER = HttpResponse(429, b"Too Many Requests\n", headers={"Retry-After": "1"})


def _token(headers: Mapping[str, str]) -> str:
    scheme, _, token = headers.get("Authorization", "").partition(" ")
    # What a token is not made of may have no place in a review's JSON.
    return token.strip() if scheme.lower() == "bearer" and token.isascii() else ""
