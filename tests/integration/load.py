"""Users who go on working whatever befalls the API server: they try again until they are answered."""

from __future__ import annotations

import http.client
import itertools
import threading
import time
from collections.abc import Callable, Collection
from types import TracebackType
from typing import Self

from operator_runtime.testing.waiting import DEADLINE_S, await_none
from tests.conformance.api import Answer, Api
from tests.integration.conftest import memcached
from tests.kubectl_in_namespace import Kubectl

# Some ten changes a second: something is always under way, and two cores bear it beside a control plane.
_PERIOD_S = 0.1
# So many Memcacheds are there at a time; an older one goes for each that comes.
_ALIVE = 6
_RETRY_S = 0.1


class Busy:
    """A thread that calls `turn` with 0, 1, 2 ... until the end of the block, which raises what `turn` raised."""

    def __init__(self, kubectl: Kubectl, name: str) -> None:
        self._api = Api(kubectl.cluster, kubectl.cluster.kubeconfig_path)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._failure: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
        self._api.close()
        if error is None:
            self._raise()

    def end(self) -> None:
        """Change nothing any more; raises what kept it from changing before."""
        self._end()
        self._raise()

    def turn(self, number: int) -> None:
        """Change something."""
        raise NotImplementedError

    def _end(self) -> None:
        self._ending.set()
        self._thread.join(DEADLINE_S)

    def _raise(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            for number in itertools.count():
                if self._ending.is_set():
                    return
                self.turn(number)
        except BaseException as failure:
            self._failure = failure


class Load(Busy):
    """A thread that creates, resizes and deletes Memcacheds, each under a name of its own; a context manager.

    `alive` has the sizes of those that must be there in the end, `gone` the names of the others. `steps` counts changes
    that were made, `refusals` tries that came to nothing. Of a change whose answer is lost it is not known whether it
    was made; it is made again, and that it had been is no error then.
    """

    def __init__(self, kubectl: Kubectl) -> None:
        super().__init__(kubectl, "load")
        self._path = f"/apis/cache.example.com/v1alpha1/namespaces/{kubectl.namespace}/memcacheds"
        self.alive: dict[str, int] = {}
        self.gone: list[str] = []
        self.steps = 0
        self.refusals = 0

    def await_steps(self, more: int) -> None:
        """Wait until so many more changes were made."""
        aim = self.steps + more

        def short() -> str | None:
            assert self._failure is None, self._failure
            return None if self.steps >= aim else f"only {self.steps} changes were made, not {aim}"

        await_none(short)

    def await_refusal(self) -> None:
        """Wait until one more try has come to nothing."""
        before = self.refusals
        await_none(lambda: None if self.refusals > before else "the users have met no fault")

    def turn(self, number: int) -> None:
        """A new one comes, is resized, and an older one goes."""
        name = f"load-{number}"
        self.alive[name] = 1
        self._until({201, 409}, lambda: self._api.post(self._path, memcached(name, 1)))
        self.alive[name] = 2 + number % 2
        self._until({200}, lambda: self._api.merge(f"{self._path}/{name}", {"spec": {"size": self.alive[name]}}))
        if len(self.alive) > _ALIVE:
            oldest = next(iter(self.alive))
            del self.alive[oldest]
            self.gone.append(oldest)
            self._until({200, 404}, lambda: self._api.delete(f"{self._path}/{oldest}"))

    def _until(self, fine: Collection[int], send: Callable[[], Answer]) -> None:
        self._ending.wait(_PERIOD_S)
        ends = time.monotonic() + DEADLINE_S
        while True:
            found = "no answer"
            try:
                answer = send()
                # A booting API server does not know all paths, and says so in plain text.
                if answer.status in fine and answer.body.startswith(b"{"):
                    self.steps += 1
                    return
                found = f"{answer.status} {answer.body[:500]!r}"
            except (OSError, http.client.HTTPException) as error:
                self._api.close()  # the next request opens it again
                found = repr(error)
            self.refusals += 1
            assert time.monotonic() < ends, f"a change could not be made for {DEADLINE_S} s: {found}"
            time.sleep(_RETRY_S)
