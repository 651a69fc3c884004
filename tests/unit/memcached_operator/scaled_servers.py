"""Two servers whose memory follows what they evict, and what they say of that."""

from __future__ import annotations

from typing import Any

from memcached_operator.servers.stats_answer import StatsAnswer
from tests.unit.memcached_operator.running_servers import pod, run_for_long, stateful_set, template_of
from tests.unit.memcached_operator.world import World

WINDOW_S, POLL_S = 600, 30
DAY_S = 86_400
WRITE = "strategic_merge_patch StatefulSet"
SPEC: dict[str, Any] = {"size": 2, "workload": "StatefulSet", "memoryScaling": {"max": "512Mi"}}
LOSS, CALM = (100, 100), (0, 0)


class Servers:
    """What two servers say, every half minute; each has the memory that it was told."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.uptime, self.evicted, self.fetched = 90_000, 0, 0

    def answer(self, mib: int, idle_s: int, age_s: int) -> StatsAnswer:
        of_class = {
            "evicted": self.evicted, "evicted_unfetched": self.evicted - self.fetched, "evicted_time": idle_s,
            "age": age_s, "number": 1000, "mem_requested": 50 * 2**20,
        }  # fmt: skip
        whole = {"version": "1.6.45", "uptime": self.uptime, "limit_maxbytes": mib * 2**20, "curr_items": 1000}
        return StatsAnswer.of(
            {name.encode(): str(value).encode() for name, value in whole.items()},
            {f"items:5:{name}".encode(): str(value).encode() for name, value in of_class.items()},
        )

    def record_answers(
        self, evicts: tuple[int, int], *, idle_s: int = 720, age_s: int = 0, seconds: int = WINDOW_S + POLL_S
    ) -> bool:
        """Answer for so long; whether something else is to be told since."""
        is_change = False
        assert self.world.stats_cache is not None
        for _ in range(seconds // POLL_S):
            self.uptime += POLL_S
            self.evicted += evicts[0]
            self.fetched += evicts[1]
            limits = dict(self.world.limits_set)
            self.world.show()
            for each in self.world.caches.pods.values():
                answer = self.answer(limits.get(each.address, 64), idle_s, age_s)
                self.world.stats_cache.record(each, answer)
                is_change |= self.world.reconciler.scaler.record(each, answer)
        return is_change


async def running_scaled(**changes: Any) -> World:
    """Two servers that run for long and are asked."""
    world = World(queried=True)
    return await run_for_long(world, **SPEC | changes)


def memory_of(world: World) -> str:
    """With which the StatefulSet's template starts a memcached."""
    command = template_of(stateful_set(world))["spec"]["containers"][0]["command"]
    return str(command[command.index("-m") + 1])


def pods(world: World) -> list[str]:
    return [pod(world, ordinal)["metadata"]["uid"] for ordinal in range(2)]
