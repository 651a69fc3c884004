"""Memcacheds to which the usual things happen during a fault, and how they must be found after it.

By plain HTTP and not by kubectl, which would have to be started thirty times.
"""

from __future__ import annotations

import http.client
import uuid
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from lab.audit import START
from operator_runtime.testing.waiting import await_none
from tests.conformance.api import Answer, Api
from tests.integration.conftest import memcached
from tests.integration.requests import requests_of
from tests.kubectl_in_namespace import Kubectl

_POLL_S = 0.05
_BEFORE = ("calm", "resized", "bared", "gone")
Objects = dict[str, dict[str, Any]]


class FaultWorkload:
    """Memcacheds in one namespace, under an operator whose name is the namespace's.

    `calm` is left alone, so that whatever changes it does so in vain. `resized` gets another size, `bared` loses its
    Deployment, `gone` is deleted, and `new` is created.
    """

    def __init__(self, kubectl: Kubectl, api: Api) -> None:
        self._kubectl = kubectl
        self._before: dict[str, object] = {}
        self._api = api
        self.memcacheds = f"/apis/cache.example.com/v1alpha1/namespaces/{kubectl.namespace}/memcacheds"
        self.deployments = f"/apis/apps/v1/namespaces/{kubectl.namespace}/deployments"
        self.mark = START

    def begin(self) -> None:
        """Create the first four, and wait until the operator has nothing more to do."""
        for name in _BEFORE:
            self.create(name, 1)
        self.await_sizes(dict.fromkeys(_BEFORE, 1))
        self.catch_up()
        self._before = self._untouched()
        self.mark = self._kubectl.cluster.audit_mark()

    def create(self, name: str, size: int) -> None:
        """As a user creates a Memcached."""
        self._api.post(self.memcacheds, memcached(name, size)).expect(201)

    def resize(self, name: str, size: int) -> None:
        """As `kubectl scale`."""
        self._api.merge(f"{self.memcacheds}/{name}", {"spec": {"size": size}}).expect(200)

    def delete_deployment(self, name: str) -> None:
        """Delete the Deployment of a Memcached."""
        self._api.delete(f"{self.deployments}/{name}").expect(200)

    def change(self) -> None:
        """Let the users do their part; it takes an API server."""
        self.resize("resized", 3)
        self.delete_deployment("bared")
        self._api.delete(f"{self.memcacheds}/gone").expect(200)
        self.create("new", 2)
        # Of each kind something comes by watches that begin anew: with the first that does they are said to be well.
        more = {"networkPolicy": {"ingress": []}, "discovery": {"configMap": {}}}
        all_kinds = memcached("named", 1, workload="StatefulSet", **more)
        self._api.post(self.memcacheds, all_kinds).expect(201)

    def await_healed(self) -> None:
        """Wait until everything is as the users want it, then see that nothing was done twice or in vain."""
        self.await_sizes({"resized": 3, "bared": 1, "new": 2, "calm": 1}, gone={"gone"})
        self.catch_up()
        self.assert_calm_untouched()
        creations = self.creations()
        wrong = {name for name in _BEFORE if creations[name] and name != "bared"}
        wrong |= {name for name, times in creations.items() if times > 1}
        assert not wrong, self.history(wrong)

    def assert_calm_untouched(self) -> None:
        """Nothing was changed of the Memcached to which nothing happened, nor is the Deployment of one made anew that
        was there all the time.
        """
        assert self._untouched() == self._before, self.history(("calm", "resized"))

    def _untouched(self) -> dict[str, object]:
        """What stays as it is where nothing is written in vain; of Deployments, the statuses are their controller's."""
        deployments = self.listed(self.deployments)
        calm = deployments["calm"]
        own = ("labels", "generation", "ownerReferences")
        return {
            "calm": self.listed(self.memcacheds)["calm"]["metadata"]["resourceVersion"],
            "its Deployment": {key: calm["metadata"].get(key) for key in own},
            **{f"the Deployment {name}": deployments[name]["metadata"]["uid"] for name in ("calm", "resized")},
        }

    def creations(self) -> Counter[str]:
        """How many Deployments of each name the operator has created since `begin`.

        One whose answer was lost (504) and that was there at the next try (409) was created by the first.
        """
        codes: dict[str, list[int]] = {}
        for each in requests_of(self._kubectl.cluster, self._kubectl.namespace, since=self.mark):
            if (each.resource, each.subresource) == ("deployments", "") and each.code in (201, 409, 504):
                codes.setdefault(each.name, []).append(each.code)
        return Counter({name: found.count(201) or int({409, 504} <= set(found)) for name, found in codes.items()})

    def history(self, names: Collection[str]) -> str:
        """What anybody asked of Deployments and Memcacheds of these names since `begin`, for a message."""
        events = self._kubectl.cluster.audit_events(since=self.mark)
        return "\n".join(
            f"{each.received_at} {each.user_agent} {each.verb} {each.resource}/{each.name} {each.code}"
            for each in events
            if each.name in names and each.resource in ("deployments", "memcacheds")
        )

    def await_sizes(self, alive: Mapping[str, int], gone: Collection[str] = ()) -> None:
        """Wait until each Memcached has its Deployment and as many servers, and nothing is left of those gone."""

        def found() -> str | None:
            deployments = self.listed(self.deployments)
            wrong = [name for name in gone if name in deployments]
            for name, each in self.listed(self.memcacheds).items():
                if name in alive:
                    replicas = deployments.get(name, {}).get("spec", {}).get("replicas")
                    reported = each.get("status", {}).get("replicas")
                    if (replicas, reported) != (alive[name], alive[name]):
                        wrong.append(f"{name}: {replicas} replicas, {reported} reported, {alive[name]} wanted")
            return "; ".join(wrong) or None

        await_none(found)
        assert set(alive) <= set(self.listed(self.memcacheds))

    def catch_up(self) -> None:
        """Return when the operator has dealt with all that happened before.

        A Memcached whose status has been made, changed and made complete since has shown events of all watches.
        """
        name = f"later-{uuid.uuid4().hex[:8]}"
        self.create(name, 1)
        self.await_sizes({name: 1})
        self.resize(name, 0)
        self.await_sizes({name: 0})
        await_none(lambda: self._incomplete(name))

    def reason(self, name: str, type_: str) -> str:
        """Why a condition of a Memcached is as it is, "" where it has no such condition."""
        conditions = self.listed(self.memcacheds)[name].get("status", {}).get("conditions", [])
        return next((str(each["reason"]) for each in conditions if each["type"] == type_), "")

    def listed(self, path: str) -> Objects:
        """The objects of a collection by name. An API server that has just begun may refuse: it is asked again."""
        answers: list[Answer] = []

        def get_once() -> str | None:
            try:
                answers.append(self._api.get(path))
            except (OSError, http.client.HTTPException) as error:
                self._api.close()  # the next request opens it again
                return repr(error)
            return None if answers[-1].status == 200 else f"{answers[-1].status} {answers[-1].body[:500]!r}"

        await_none(get_once)
        return {each["metadata"]["name"]: each for each in answers[-1].expect(200)["items"]}

    def _incomplete(self, name: str) -> str | None:
        reason = self.reason(name, "Progressing")
        return None if reason == "Complete" else f"{name} is {reason or 'not reported'}"


@contextmanager
def workload_of(kubectl: Kubectl) -> Iterator[FaultWorkload]:
    """A workload that has not begun."""
    api = Api(kubectl.cluster, kubectl.cluster.kubeconfig_path)
    try:
        yield FaultWorkload(kubectl, api)
    finally:
        api.close()
