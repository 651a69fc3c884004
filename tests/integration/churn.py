"""Constant changes: Memcacheds that come, are resized, and go, for as long as a test lasts."""

from __future__ import annotations

import itertools
import threading
from types import TracebackType
from typing import Self

from tests.conformance.api import Api
from tests.integration.conftest import Kubectl, memcached

# A change each 50 ms: something is always waiting for whoever leads, and two cores bear it.
_PERIOD_S = 0.05
# Each Memcached lives for so many changes, half of them for ever.
_STEPS = 4


class Churn:
    """A thread that changes Memcacheds; a context manager. `alive` are those that must be there in the end."""

    def __init__(self, kubectl: Kubectl) -> None:
        self._api = Api(kubectl.cluster, kubectl.cluster.kubeconfig_path)
        self._path = f"/apis/cache.example.com/v1alpha1/namespaces/{kubectl.namespace}/memcacheds"
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._failure: BaseException | None = None
        self.alive: dict[str, int] = {}
        self.gone: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
        self._api.close()

    def end(self) -> None:
        """Change nothing any more; raises what kept it from changing before."""
        self._ended.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            for number in itertools.count():
                if self._ended.wait(_PERIOD_S):
                    return
                self._step(number)
        except BaseException as failure:
            self._failure = failure

    def _step(self, number: int) -> None:
        turn, step = divmod(number, _STEPS)
        name = f"churn-{turn}"
        match step:
            case 0:
                self._api.post(self._path, memcached(name, 1)).expect(201)
                self.alive[name] = 1
            case 1 | 2:
                self._api.merge(f"{self._path}/{name}", {"spec": {"size": step + 1}}).expect(200)
                self.alive[name] = step + 1
            case _ if turn % 2:
                self._api.delete(f"{self._path}/{name}").expect(200)
                del self.alive[name]
                self.gone.append(name)
