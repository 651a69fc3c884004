"""Credentials from a command: the client side of client.authentication.k8s.io, the exec credential protocol.

One run of one plugin; caching, expiry and repetition after a 401 are `CachedIdentity`'s.
"""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from operator_runtime.client.access.credentials import Discreet, Identity, bearer, is_token
from operator_runtime.client.access.tls import ClientCertificate
from operator_runtime.client.errors import UNDECODABLE, AuthenticationUnavailable

# client-go dropped v1alpha1 with 1.24.
API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
# A cloud's token service answers within seconds; a person in a browser needs minutes.
TIMEOUT_S = 180.0
# A process that hangs in the kernel, on a network file system that is gone, outlives SIGKILL: it is not waited for.
KILL_TIMEOUT_S = 5.0
# An answer is a token or a certificate chain with its key, some KiB.
MAX_ANSWER_BYTES = 1 << 20

InteractiveMode = Literal["Never", "IfAvailable", "Always"]


class _Status(Discreet, frozen=True, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class _ExecCredential(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str | None = None
    kind: str | None = None
    status: _Status | None = None


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """One exec plugin of a kubeconfig; call `fetch` to run it.

    Attributes:
        name: what it is, in messages: "exec plugin aws of user eks in ~/.kube/config".
        command: a name to look up in PATH, or a path.
        api_version: the answer must have the same.
        environ: all variables of the plugin but KUBERNETES_EXEC_INFO.
        cluster_info: what `provideClusterInfo` sends, None without it.
    """

    name: str
    command: str
    arguments: Sequence[str] = field(default=(), repr=False)
    api_version: str = API_VERSIONS[0]
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    install_hint: str = ""
    cluster_info: Callable[[], Mapping[str, object]] | None = None
    timeout_s: float = TIMEOUT_S

    async def fetch(self) -> Identity:
        """Run the plugin and read its answer. Its standard error is ours: it is meant for the person who has to log in.

        Raises AuthenticationUnavailable where it is missing, fails, takes too long, or answers something else.
        """
        try:
            read_end, write_end = os.pipe()
        except OSError as error:
            raise AuthenticationUnavailable(f"{self.name} cannot be started ({error.strerror})") from None
        output = _Output(read_end)
        try:
            try:
                process = await self._start(write_end)
            finally:
                os.close(write_end)
            await self._ended(process, output)
        finally:
            output.close()
        if process.returncode != 0:
            raise AuthenticationUnavailable(
                f"{self.name} failed with exit code {process.returncode}; it may have said why on standard error."
                " Most often one has to log in again"
            )
        return self._identity(bytes(output.taken))

    async def _start(self, stdout: int) -> Process:
        spec: dict[str, object] = {"interactive": False}
        if self.cluster_info is not None:
            spec["cluster"] = self.cluster_info()
        info = {"apiVersion": self.api_version, "kind": "ExecCredential", "spec": spec}
        try:
            return await asyncio.create_subprocess_exec(
                self.command,
                *self.arguments,
                stdin=DEVNULL,
                stdout=stdout,
                env={**self.environ, "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()},
                start_new_session=True,  # so that it can be killed with all that it started
            )
        except FileNotFoundError:
            hint = " ".join(self.install_hint.split()) or "install it, or correct `command` and PATH"
            raise AuthenticationUnavailable(f"{self.name}: no command {self.command!r}. {hint}") from None
        except OSError as error:
            raise AuthenticationUnavailable(
                f"{self.name}: {self.command!r} cannot be started ({error.strerror}); check its permissions"
            ) from None
        except ValueError as error:
            # NUL in a word, `=` in a variable's name, half of a character; Python's words do not quote it.
            reason = "half of a character" if isinstance(error, UnicodeError) else error
            raise AuthenticationUnavailable(
                f"{self.name} cannot be started ({reason}); correct `command`, `args` and `env`"
            ) from None

    async def _ended(self, process: Process, output: _Output) -> None:
        """Wait for the plugin's end, not for that of its output, which a child of it may keep open for ever."""
        exited = asyncio.create_task(process.wait())
        ends: set[asyncio.Future[int] | asyncio.Future[None]] = {exited, output.full}
        try:
            async with asyncio.timeout(self.timeout_s):
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            raise AuthenticationUnavailable(
                f"{self.name} did not answer within {self.timeout_s:.0f} s; run it by hand to see what it waits for"
            ) from None
        finally:
            # `exited` does not show it: at the end of the event loop it is cancelled as this task is.
            exited.cancel()
            if process.returncode is None:
                self._kill(process)
                with suppress(TimeoutError):
                    async with asyncio.timeout(KILL_TIMEOUT_S):
                        await process.wait()
        output.take()
        if output.full.done():
            raise self._unreadable(f"its answer is longer than {MAX_ANSWER_BYTES >> 20} MiB")

    def _kill(self, process: Process) -> None:
        # One that has become another user, by sudo for instance, cannot be killed.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)

    def _identity(self, answer: bytes) -> Identity:
        try:
            credential = msgspec.json.decode(answer, type=_ExecCredential)
        except UNDECODABLE as error:
            # Their messages name fields, types and places, never values.
            raise self._unreadable(f"its answer is not an ExecCredential: {error}") from None
        if credential.kind != "ExecCredential" or credential.api_version != self.api_version:
            raise self._unreadable(f"its answer is not an ExecCredential of {self.api_version}, as the kubeconfig says")
        status = credential.status or _Status()
        certificate = None
        if status.client_certificate_data or status.client_key_data:
            if not (status.client_certificate_data and status.client_key_data):
                raise self._unreadable("it gave one of clientCertificateData and clientKeyData without the other")
            certificate = ClientCertificate(
                f"the client certificate of {self.name}",
                status.client_certificate_data.encode(),
                status.client_key_data.encode(),
            )
        if not status.token and certificate is None:
            raise self._unreadable("its answer holds neither a token nor a client certificate")
        if status.token and not is_token(status.token):
            raise self._unreadable("its token holds white space or characters that no token has")
        expires = status.expiration_timestamp
        return Identity(
            headers=bearer(status.token) if status.token else {},
            certificate=certificate,
            expires_at_s=None if expires is None else expires.timestamp(),
        )

    def _unreadable(self, fault: str) -> AuthenticationUnavailable:
        return AuthenticationUnavailable(f"{self.name}: {fault}; update the plugin, or correct `apiVersion`")


class _Output:
    """Output that a plugin has written so far, read as it comes by the event loop that it is made on.

    Invariant: the descriptor is watched until its end, until `full` or `close`, whichever comes first.
    """

    def __init__(self, descriptor: int) -> None:
        self.taken = bytearray()
        self.full: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(descriptor, self.take)

    def take(self) -> None:
        while not self.full.done():
            try:
                chunk = os.read(self._descriptor, 1 << 16)
            except BlockingIOError:
                return
            if not chunk:
                break
            self.taken += chunk
            if len(self.taken) > MAX_ANSWER_BYTES:
                self.full.set_result(None)
        self._loop.remove_reader(self._descriptor)

    def close(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
