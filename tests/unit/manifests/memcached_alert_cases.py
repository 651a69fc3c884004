"""For each alert on Memcacheds and their servers, what Prometheus sees when it fires and when it must not."""

from __future__ import annotations

from collections.abc import Mapping

from tests.unit.manifests.alert_cases import IN_A, A, B, Case, Firing, up

SERVERS = 'job="memcached-servers"'
CACHE = {"namespace": "shop", "memcached": "cache"}
CACHE_0 = {**CACHE, "pod": "cache-0"}


def _servers(desired: str, ready: str) -> dict[str, str]:
    cache = 'exported_namespace="shop",name="cache"'
    return {
        f"memcached_operator_memcached_{what}_servers{{{pod},{cache}}}": values
        for pod in (A, B)
        for what, values in (("desired", desired), ("ready", ready))
    }


def _memcacheds(condition: str, status: str, reason: str, values: str) -> dict[str, str]:
    """How many both replicas see that have a condition in this status for this reason."""
    labels = f'condition="{condition}",status="{status}",reason="{reason}"'
    return {f"memcached_operator_memcacheds{{{pod},{labels}}}": values for pod in (A, B)}


def _server(metric: str, values: str, labels: str = "", pod: str = "cache-0") -> dict[str, str]:
    """What a server of Memcached shop/cache says of itself."""
    return {f'memcached_{metric}{{{SERVERS},namespace="shop",memcached="cache",pod="{pod}"{labels}}}': values}


def _connections(current: str, limit: str = "100x60") -> dict[str, str]:
    return {**_server("current_connections", current), **_server("max_connections", limit)}


def _gets(hits: str, misses: str, evictions: str) -> dict[str, str]:
    """Of two servers of the same Memcached, one of which nobody asks for anything."""
    return {
        **_server("commands_total", hits, ',command="get",status="hit"'),
        **_server("commands_total", misses, ',command="get",status="miss"'),
        **_server("commands_total", "0+9x120", ',command="set",status="hit"'),
        **_server("items_evicted_total", evictions),
        **_server("commands_total", "0x120", ',command="get",status="hit"', "cache-1"),
        **_server("commands_total", "0x120", ',command="get",status="miss"', "cache-1"),
        **_server("items_evicted_total", "0x120", pod="cache-1"),
    }


def _disk(evictions: str, free: str, used: str) -> dict[str, str]:
    return {
        **_server("items_evicted_total", evictions),
        **_server("extstore_pages_free", free),
        **_server("extstore_pages_used", used),
    }


def _in(days: int) -> int:
    return days * 24 * 3600


_EXPIRY = "server_certificate_expiry_timestamp_seconds"
_EXPIRED = "A server of Memcached shop/cache shows a certificate that expires in -15m 0s. Negative: it has expired."


MEMCACHED_CASES: Mapping[str, tuple[Case, ...]] = {
    "MemcachedDegraded": (
        Case(
            "two lack a permission",
            "16m",
            _memcacheds("Degraded", "True", "Forbidden", "2x60"),
            Firing(
                {"namespace": "ops", "reason": "Forbidden"},
                "For 15 minutes there have been Memcacheds for which the operator in ops cannot do its work, for the "
                "reason Forbidden; 2 now.",
            ),
        ),
        Case("nothing is in the way", "30m", _memcacheds("Degraded", "False", "AsExpected", "2x60")),
        Case(
            "a specification was wrong for ten minutes", "30m", _memcacheds("Degraded", "True", "InvalidSpec", "1x10")
        ),
        Case(
            "a rollout is stuck, for which there is another alert",
            "30m",
            _memcacheds("Degraded", "True", "RolloutStuck", "1x60"),
        ),
    ),
    "MemcachedRolloutStuck": (
        Case(
            "a new server of a StatefulSet does not get ready",
            "6m",
            {
                **_memcacheds("Ready", "False", "RolloutStuck", "1x60"),
                **_memcacheds("Degraded", "True", "RolloutStuck", "1x60"),
            },
            Firing(
                {"namespace": "ops", "reason": "RolloutStuck"},
                "1 Memcacheds of the operator in ops are in the midst of a rollout that does not go on, for the reason "
                "RolloutStuck.",
            ),
        ),
        Case(
            "a Deployment's controller has given up",
            "6m",
            _memcacheds("Progressing", "False", "DeadlineExceeded", "3x60"),
            Firing(
                {"namespace": "ops", "reason": "DeadlineExceeded"},
                "3 Memcacheds of the operator in ops are in the midst of a rollout that does not go on, for the reason "
                "DeadlineExceeded.",
            ),
        ),
        Case("a rollout goes on for an hour", "59m", _memcacheds("Progressing", "True", "Updating", "1x60")),
        Case("the specification went back", "30m", _memcacheds("Degraded", "True", "RolloutStuck", "1x3")),
    ),
    "MemcachedMemoryShort": (
        Case(
            "nodes have no room",
            "61m",
            _memcacheds("Retaining", "False", "ResizeImpossible", "2x90"),
            Firing(
                {"namespace": "ops", "reason": "ResizeImpossible"},
                "For an hour there have been Memcacheds of the operator in ops that keep items for less than "
                "spec.memoryScaling.retentionSeconds and cannot grow, for the reason ResizeImpossible; 2 now.",
            ),
        ),
        Case("memory grows", "2h", _memcacheds("Retaining", "False", "Growing", "1x130")),
        Case("a quota is raised in time", "2h", _memcacheds("Retaining", "False", "QuotaExceeded", "1x50")),
    ),
    "MemcachedUnavailable": (
        Case(
            "the first servers never get ready",
            "16m",
            _memcacheds("Available", "False", "MinimumReplicasUnavailable", "1x60"),
            Firing(
                {"namespace": "ops"},
                "For 15 minutes there have been Memcacheds of the operator in ops that have fewer ready servers than "
                "it takes to be available; 1 now.",
            ),
        ),
        Case("enough are ready", "30m", _memcacheds("Available", "True", "MinimumReplicasAvailable", "2x60")),
        Case(
            "small ones roll one after another",
            "59m",
            _memcacheds(
                "Available", "False", "MinimumReplicasUnavailable", "0 1 1 0 0 1 0 0 0 1 0 1 1 1 0 1x9 0 1x14 0x60"
            ),
        ),
    ),
    "MemcachedServersNotReady": (
        Case(
            "a server was lost",
            "16m",
            _memcacheds("Ready", "False", "ServersNotReady", "1x60"),
            Firing(
                {"namespace": "ops"},
                "For 15 minutes there have been Memcacheds of the operator in ops whose servers are not all ready, "
                "although nothing is being changed; 1 now.",
            ),
        ),
        Case("many roll one after another", "59m", _memcacheds("Ready", "False", "Updating", "1x60")),
        Case("a node was drained", "30m", _memcacheds("Ready", "False", "ServersNotReady", "5x10")),
    ),
    "MemcachedServersMissing": (
        Case(
            "one of three is not ready",
            "16m",
            _servers("3x60", "2x60"),
            Firing(
                {"exported_namespace": "shop", "name": "cache"},
                "1 servers of Memcached shop/cache have not been ready for 15 minutes.",
            ),
        ),
        Case("all are ready", "30m", _servers("3x60", "3x60")),
        Case("a rollout of ten minutes", "30m", _servers("3x60", "3x5 2x10 3x60")),
        Case("fewer are wanted, and the last has not gone yet", "30m", _servers("2x60", "3x60")),
    ),
    "MemcachedServersNotScraped": (
        Case(
            "the scraper may get one path of two",
            "11m",
            {**up("1x60", "1x60"), f'up{{{SERVERS},namespace="ops",pod="a"}}': "0x60"},
            Firing(
                IN_A,
                "Prometheus gets /metrics of ops/a, and for 10 minutes has not got /metrics/servers. Alerts on servers "
                "are silent.",
            ),
        ),
        Case("both are scraped", "30m", {**up("1x60", "1x60"), f'up{{{SERVERS},namespace="ops",pod="a"}}': "1x60"}),
        Case(
            "the pod does not answer at all, for which there is another alert",
            "30m",
            {**up("0x60", "1x60"), f'up{{{SERVERS},namespace="ops",pod="a"}}': "0x60"},
        ),
    ),
    "MemcachedServerNotAnswering": (
        Case(
            "one of two does not answer",
            "6m",
            {**_server("up", "0x60"), **_server("up", "1x60", pod="cache-1")},
            Firing(
                CACHE_0,
                "Server shop/cache-0 of Memcached cache is ready, and has not answered the operator for 5 minutes.",
            ),
        ),
        Case(
            "while the lead changes nobody asks it",
            "6m",
            _server("up", "0x2 stale stale 0x60"),
            Firing(
                CACHE_0,
                "Server shop/cache-0 of Memcached cache is ready, and has not answered the operator for 5 minutes.",
            ),
        ),
        Case("it answers", "30m", _server("up", "1x60")),
        Case("it was away for three minutes", "20m", _server("up", "1x9 0x2 1x60")),
        Case("it is gone", "20m", _server("up", "0x4 stale")),
        Case(
            "an exporter's of somebody else",
            "30m",
            {'memcached_up{job="exporter",namespace="shop",pod="cache-0"}': "0x60"},
        ),
    ),
    # promtool's clock begins at 0.
    "MemcachedCertificateExpires": (
        Case(
            "thirteen days are left",
            "16m",
            {**_server(_EXPIRY, f"{_in(13)}x60"), **_server(_EXPIRY, f"{_in(80)}x60", pod="cache-1")},
            Firing(
                CACHE,
                "A server of Memcached shop/cache shows a certificate that expires in 12d 23h 44m 0s. Negative: it has "
                "expired.",
            ),
        ),
        Case("it has expired", "20m", _server(_EXPIRY, "300x60"), Firing(CACHE, _EXPIRED)),
        Case("fifteen days are left", "59m", _server(_EXPIRY, f"{_in(15)}x60")),
        Case("it is renewed at once", "30m", _server(_EXPIRY, f"{_in(13)}x10 {_in(90)}x60")),
        Case("plain servers have none", "30m", _server("up", "1x60")),
    ),
    "MemcachedCertificateStale": (
        Case(
            "of two Memcacheds",
            "6m",
            _memcacheds("Serving", "False", "CertificateStale", "2x60"),
            Firing(
                {"namespace": "ops"},
                "2 Memcacheds of the operator in ops have servers that still show an older certificate than others of "
                "theirs.",
            ),
        ),
        Case("it was late", "30m", _memcacheds("Serving", "False", "CertificateStale", "1x3 0x60")),
        Case("another reason", "30m", _memcacheds("Serving", "False", "CertificateExpired", "1x60")),
    ),
    "MemcachedConnectionsNearLimit": (
        Case(
            "nine of ten",
            "16m",
            _connections("90x60"),
            Firing(CACHE_0, "Server shop/cache-0 of Memcached cache has 90% of its connections open."),
        ),
        Case(
            "while the lead changes nobody asks it",
            "16m",
            _connections("90x5 stale stale 90x60", "100x5 stale stale 100x60"),
            Firing(CACHE_0, "Server shop/cache-0 of Memcached cache has 90% of its connections open."),
        ),
        Case("half of them", "30m", _connections("50x60")),
        Case("nine of ten for ten minutes", "30m", _connections("50x5 90x10 50x60")),
        Case("the limit was raised", "30m", _connections("90x60", "100x10 200x60")),
    ),
    "MemcachedConnectionsExhausted": (
        Case(
            "a server with 64 threads, which is full at two thirds of the limit and cannot be asked any more",
            "16m",
            {
                **_memcacheds("Serving", "False", "ConnectionsExhausted", "0x3 1x60"),
                **_connections("68x3 stale", "100x3 stale"),
            },
            Firing(
                {"namespace": "ops"},
                "For 5 minutes there have been Memcacheds of the operator in ops with servers that turn connections "
                "away, as they have as many as they may; 1 now.",
            ),
        ),
        Case("nine of ten", "30m", _connections("90x60")),
        Case("another condition", "30m", _memcacheds("Serving", "False", "NotAnswering", "1x60")),
        Case("none for three minutes", "30m", _memcacheds("Serving", "False", "ConnectionsExhausted", "0x5 1x3 0x60")),
    ),
    "MemcachedConnectionsRejected": (
        Case(
            "six a minute",
            "20m",
            _server("connections_rejected_total", "0+6x60"),
            Firing(
                CACHE_0,
                "Server shop/cache-0 of Memcached cache has rejected connections for 10 minutes, 100m a second now.",
            ),
        ),
        Case("none", "30m", _server("connections_rejected_total", "0x60")),
        Case("a hundred long ago", "30m", _server("connections_rejected_total", "100x60")),
        Case("a burst", "20m", _server("connections_rejected_total", "0x9 500x60")),
    ),
    "MemcachedEvictions": (
        Case(
            "what is missed was evicted",
            "70m",
            _gets("0+60x120", "0+40x120", "0+40x120"),
            Firing(CACHE, "Memcached shop/cache evicts items to make room, and only 60% of the gets find theirs."),
        ),
        Case("what is missed was never there", "70m", _gets("0+60x120", "0+40x120", "0+1x120")),
        Case("nothing is evicted", "70m", _gets("0+60x120", "0+40x120", "0x120")),
        Case("much is evicted, and most is found", "70m", _gets("0+95x120", "0+5x120", "0+40x120")),
        Case("it was empty at first", "70m", _gets("0+60x20 1200+99x120", "0+40x20 800+1x120", "0+40x20 800x120")),
        Case("nobody asks for anything", "70m", _gets("0x120", "0x120", "0+40x120")),
    ),
    "MemcachedDiskDamaged": (
        Case(
            "two values",
            "20m",
            _server("extstore_damaged_total", "0x10 2x120"),
            Firing(
                CACHE_0,
                "Server shop/cache-0 of Memcached cache has read 2 damaged values from its disk within an hour.",
            ),
        ),
        Case("none", "30m", _server("extstore_damaged_total", "0x60")),
        Case("two hours ago", "3h", _server("extstore_damaged_total", "0x10 2x200")),
    ),
    "MemcachedDiskSlow": (
        Case(
            "a hundred at all times",
            "30m",
            _server("extstore_io_queue_depth", "100x60"),
            Firing(
                CACHE_0,
                "For 15 minutes at least 100 requests have waited for the disk of server shop/cache-0 of Memcached "
                "cache at all times.",
            ),
        ),
        Case("bursts", "30m", _server("extstore_io_queue_depth", "100 0 100 0 100 0 100 0" + " 100 0" * 20)),
        Case("ten minutes", "40m", _server("extstore_io_queue_depth", "0x10 100x10 0x40")),
    ),
    "MemcachedDiskBehind": (
        Case(
            "half of the disk is free",
            "40m",
            _disk("0+120x60", "50x60", "50x60"),
            Firing(
                CACHE_0,
                "Server shop/cache-0 of Memcached cache evicts 2 items a second, although its disk has room for more.",
            ),
        ),
        Case("the disk is full", "40m", _disk("0+120x60", "1x60", "99x60")),
        Case("hardly any", "40m", _disk("0+30x60", "50x60", "50x60")),
        Case("without a disk", "40m", _server("items_evicted_total", "0+120x60")),
    ),
}
