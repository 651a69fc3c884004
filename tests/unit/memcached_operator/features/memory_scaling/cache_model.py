"""A memcached of two servers or more as its statistics show it: an LRU of items of one size, its load, and the clock.

Keys are spread over servers by their number. A client that misses a key stores it, as clients of caches do.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from memcached_operator.features.memory_scaling.scaling_decision import Decision, Grow, History, decide_memory, extended
from memcached_operator.servers.stats_answer import StatsAnswer

POLL_S, WINDOW_S = 30, 600
ITEMS_OF_MIB = 5
SIZE_CLASS = 30


@dataclass
class Item:
    used_s: float
    fetched: bool = False


@dataclass
class Server:
    """An LRU with the counts of a memcached."""

    mib: int
    items: OrderedDict[int, Item] = field(default_factory=OrderedDict)
    evicted: int = 0
    unfetched: int = 0
    evicted_s: float = 0.0
    lost_young: int = 0

    def get(self, key: int, now_s: float, retention_s: float) -> bool:
        if (item := self.items.get(key)) is not None:
            item.used_s, item.fetched = now_s, True
            self.items.move_to_end(key)
            return True
        while len(self.items) >= self.mib * ITEMS_OF_MIB:
            _, gone = self.items.popitem(last=False)
            self.evicted += 1
            self.unfetched += not gone.fetched
            self.evicted_s = now_s - gone.used_s
            self.lost_young += gone.fetched and self.evicted_s < retention_s
        self.items[key] = Item(now_s)
        return False

    def answer(self, now_s: float) -> StatsAnswer:
        oldest = next(iter(self.items.values()), None)
        of_class = {
            "evicted": self.evicted, "evicted_unfetched": self.unfetched, "evicted_time": int(self.evicted_s),
            "age": int(now_s - oldest.used_s) if oldest else 0, "number": len(self.items),
            "mem_requested": len(self.items) * 2**20 * 4 // (5 * ITEMS_OF_MIB),
        }  # fmt: skip
        whole = {"uptime": int(now_s), "limit_maxbytes": self.mib * 2**20, "curr_items": len(self.items)}
        return StatsAnswer.of(
            {name.encode(): str(value).encode() for name, value in whole.items()},
            {f"items:{SIZE_CLASS}:{name}".encode(): str(value).encode() for name, value in of_class.items()},
        )


Load = Callable[[float, random.Random], Iterator[int]]
"""The keys that clients ask for in a second."""


@dataclass
class Cache:
    """Servers, their load, and the memory that the decisions come to.

    Attributes:
        steps: when the memory grew, and to how many MiB.
        hits: of each window, the share of requests that hit.
    """

    load: Load
    mib: int = 64
    max_mib: int = 512
    retention_s: float = 3600.0
    servers: int = 2
    now_s: float = 0.0
    steps: list[tuple[float, int]] = field(default_factory=list)
    hits: list[float] = field(default_factory=list)
    decision: Decision | None = None

    def __post_init__(self) -> None:
        self.running = [Server(self.mib) for _ in range(self.servers)]
        self.histories = [History()] * self.servers
        self.random = random.Random(1)

    def run(self, seconds: float) -> None:
        until_s = self.now_s + seconds
        requests = found = 0
        while self.now_s < until_s:
            for key in self.load(self.now_s, self.random):
                requests += 1
                found += self.running[key % self.servers].get(key, self.now_s, self.retention_s)
            self.now_s += 1
            if self.now_s % POLL_S == 0:
                self.poll()
            if self.now_s % WINDOW_S == 0:
                self.hits.append(found / requests if requests else 0.0)
                requests = found = 0

    def poll(self) -> None:
        self.histories = [
            extended(history, server.answer(self.now_s), 0, WINDOW_S, self.retention_s)
            for history, server in zip(self.histories, self.running, strict=True)
        ]
        self.decision = decide_memory(self.histories, self.servers, self.mib, self.max_mib, self.retention_s, WINDOW_S)
        if isinstance(self.decision, Grow):
            assert self.decision.from_mib == self.mib < self.decision.to_mib <= self.max_mib
            self.mib = self.decision.to_mib
            self.steps.append((self.now_s, self.mib))
            for server in self.running:
                server.mib = self.mib

    @property
    def lost_young(self) -> int:
        """How many items were evicted that had been fetched, and idle for less than the retention."""
        return sum(each.lost_young for each in self.running)
