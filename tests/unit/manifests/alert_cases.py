"""For each alert on the operator, what Prometheus sees when it fires and when it must not, in promtool's notation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Firing:
    """An alert that fires: its labels besides name and severity, and its description."""

    labels: Mapping[str, str]
    description: str


@dataclass(frozen=True, slots=True)
class Case:
    """What is scraped once a minute, and what is expected at a time.

    Attributes:
        says: the case, in a few words.
        at: when to look, such as `10m`.
        series: values by series.
        firing: none where the alert must be silent.
    """

    says: str
    at: str
    series: Mapping[str, str]
    firing: Firing | None = field(default=None)


JOB = 'job="memcached-operator"'
A = f'{JOB},namespace="ops",pod="a"'
B = f'{JOB},namespace="ops",pod="b"'
IN_A = {"namespace": "ops", "pod": "a"}
LOCK = 'name="memcached-operator-lock"'
PODS = 'resource="pods"'
CONTROLLER = 'controller="memcached"'
NEVER = "0x60"
HELD = {"namespace": "ops", "name": "memcached-operator-lock"}

OPS_DOWN = Firing(
    {"namespace": "ops"},
    "Prometheus has had no answer from the memcached-operator in ops for 5 minutes, while one in another namespace "
    "answers. Running servers continue; no change of a Memcached of this one is acted on.",
)


def of_a(**values: str) -> dict[str, str]:
    """Metrics of the pod a."""
    return {f"{name}{{{A}}}": value for name, value in values.items()}


def of_controller(**values: str) -> dict[str, str]:
    return {f"{name}{{{A},{CONTROLLER}}}": value for name, value in values.items()}


def _events(reason: str, values: str) -> dict[str, str]:
    return {f'events_dropped_total{{{A},reason="{reason}"}}': values}


def _longest(values: str) -> dict[str, str]:
    return {f'workqueue_longest_running_processor_seconds{{{A},name="memcached",{CONTROLLER}}}': values}


def _pods(metric: str, values: str) -> dict[str, str]:
    return {f'{metric}{{{A},{PODS},scope=""}}': values}


def up(a: str, b: str) -> dict[str, str]:
    return {f"up{{{A}}}": a, f"up{{{B}}}": b}


def _installs(ops: str, shop: str, shop_standby: str = NEVER) -> dict[str, str]:
    """Whether the pods of two installs answer: one in ops, two in shop."""
    return {
        f'up{{{JOB},namespace="{namespace}",pod="{pod}"}}': values
        for namespace, pod, values in (("ops", "a", ops), ("shop", "c", shop), ("shop", "d", shop_standby))
    }


def _leads(a: str, b: str) -> dict[str, str]:
    return {f"leader_election_master_status{{{A},{LOCK}}}": a, f"leader_election_master_status{{{B},{LOCK}}}": b}


def _lag(slow: str, fast: str) -> dict[str, str]:
    """The histogram of a pod: looks that were late by up to a second, and those that were not."""
    return {
        f'event_loop_lag_seconds_bucket{{{A},le="0.005"}}': fast,
        f'event_loop_lag_seconds_bucket{{{A},le="0.5"}}': fast,
        f'event_loop_lag_seconds_bucket{{{A},le="1"}}': slow,
        f'event_loop_lag_seconds_bucket{{{A},le="+Inf"}}': slow,
    }


def _requests(good: str, bad: str, code: str) -> dict[str, str]:
    return {
        f'rest_client_requests_total{{{A},code="200",method="GET",host="api"}}': good,
        f'rest_client_requests_total{{{A},code="{code}",method="PATCH",host="api"}}': bad,
    }


def _queue(depth: str, active: str) -> dict[str, str]:
    return {
        f'workqueue_depth{{{A},name="memcached",{CONTROLLER},priority="0"}}': depth,
        f"controller_runtime_active_workers{{{A},{CONTROLLER}}}": active,
        f"controller_runtime_max_concurrent_reconciles{{{A},{CONTROLLER}}}": "8x60",
    }


def _unreadable(total: str, started: str) -> dict[str, str]:
    return {
        f'watch_stream_unreadable_objects_total{{{A},{PODS},scope=""}}': total,
        f"process_start_time_seconds{{{A}}}": started,
    }


UNREADABLE = Firing(
    {"namespace": "ops", "resource": "pods"},
    "pods had an object within the last hour that the operator in ops cannot decode. It is skipped until it changes.",
)
OPERATOR_CASES: Mapping[str, tuple[Case, ...]] = {
    "MemcachedOperatorDown": (
        Case(
            "nothing answers",
            "6m",
            up("0x60", "0x60"),
            Firing(
                {},
                "Prometheus has found no memcached-operator that answers for 5 minutes. Running servers continue; no "
                "change of a Memcached is acted on.",
            ),
        ),
        Case("one of two answers", "30m", up("0x60", "1x60")),
        Case("all are away for three minutes", "8m", up("1x4 0x2 1x60", "1x4 0x2 1x60")),
        Case("one of two installs answers", "30m", _installs("0x60", "1x60")),
    ),
    "MemcachedOperatorInstallDown": (
        Case("the pods of one of two installs are there, and do not answer", "6m", _installs("0x60", "1x60"), OPS_DOWN),
        Case("one of two installs is gone with its targets", "16m", _installs("1x9 stale", "1x60"), OPS_DOWN),
        Case("one that was there for ten minutes is remembered", "68m", _installs("1x9 stale", "1x200"), OPS_DOWN),
        Case("an hour later it is forgotten", "71m", _installs("1x9 stale", "1x200")),
        Case("one whose pods are there is not forgotten", "180m", _installs("1x9 0x200", "1x200"), OPS_DOWN),
        Case("each answers, one with a replica that does not", "30m", _installs("1x60", "1x60", "0x60")),
        Case("one is away for three minutes", "12m", _installs("1x4 0x2 1x60", "1x60")),
        Case("none answers, which is the alert above", "30m", _installs("0x60", "0x60")),
        Case("the only install does not answer, which is the alert above", "30m", up("0x60", "0x60")),
        Case(
            "another operator's is gone",
            "30m",
            {**up("1x60", "1x60"), 'up{job="another",namespace="shop",pod="a"}': "1x4 stale"},
        ),
    ),
    "MemcachedOperatorReplicaDown": (
        Case(
            "one does not answer",
            "11m",
            up("0x60", "1x60"),
            Firing(IN_A, "Prometheus has had no answer from ops/a for 10 minutes."),
        ),
        Case("both answer", "30m", up("1x60", "1x60")),
        Case("another operator's", "30m", {'up{job="another",namespace="ops",pod="a"}': "0x60"}),
    ),
    "MemcachedOperatorRestarts": (
        Case(
            "three times anew within the hour",
            "40m",
            of_a(process_start_time_seconds="100x9 700x9 1300x9 1900x60"),
            Firing(IN_A, "The operator in ops/a has started 3 times anew within the last hour."),
        ),
        Case("once", "40m", of_a(process_start_time_seconds="100x9 700x60")),
        Case(
            "new pods of a rollout",
            "40m",
            {f'process_start_time_seconds{{{JOB},namespace="ops",pod="{n}"}}': f"{n}00x60" for n in (1, 2, 3, 4)},
        ),
    ),
    "MemcachedOperatorEventLoopLag": (
        Case(
            "one look in twenty is late by half a second or more",
            "30m",
            _lag("0+120x60", "0+114x60"),
            Firing(IN_A, "One look in a hundred at the event loop of ops/a was more than 900ms late."),
        ),
        Case("one look in a thousand is late", "30m", _lag("0+1000x60", "0+999x60")),
    ),
    "MemcachedOperatorOutOfDescriptors": (
        Case(
            "nine of ten are open",
            "11m",
            of_a(process_open_fds="90x60", process_max_fds="100x60"),
            Firing(IN_A, "ops/a has 90% of its file descriptors open."),
        ),
        Case("as usual", "30m", of_a(process_open_fds="30x60", process_max_fds="1024x60")),
    ),
    "MemcachedOperatorCertificate": (
        Case(
            "the files do not fit together",
            "11m",
            of_a(certwatcher_last_read_successful="0x60"),
            Firing(
                IN_A,
                "The files of --metrics-cert-dir of ops/a cannot be used. The last good certificate is served until "
                "it runs out, and metrics are gone then, or with the next restart.",
            ),
        ),
        Case("half of a renewal is seen", "30m", of_a(certwatcher_last_read_successful="1x9 0x1 1x60")),
    ),
    "MemcachedOperatorNoLeader": (
        Case(
            "two stand by",
            "3m",
            _leads("0x60", "0x60"),
            Firing(
                HELD,
                "None of the replicas in ops has led by memcached-operator-lock for 2 minutes. Servers that run go "
                "on; no change of a Memcached is acted on.",
            ),
        ),
        Case("one leads, one stands by", "30m", _leads("1x60", "0x60")),
        Case("the lead is handed over", "12m", _leads("1x9 0x60", "0x10 1x60")),
    ),
    "MemcachedOperatorTwoLeaders": (
        Case(
            "both lead",
            "3m",
            _leads("1x60", "1x60"),
            Firing(HELD, "2 replicas in ops say that they lead by memcached-operator-lock."),
        ),
        Case("one leads, one stands by", "30m", _leads("1x60", "0x60")),
        Case("the old leader was scraped a minute ago", "12m", _leads("1x10 0x60", "0x9 1x60")),
        Case(
            "two installs in two namespaces",
            "30m",
            {
                f'leader_election_master_status{{{JOB},namespace="{namespace}",pod="a",{LOCK}}}': "1x60"
                for namespace in ("ops", "shop")
            },
        ),
    ),
    "MemcachedOperatorNotReady": (
        Case(
            "one list is missing",
            "6m",
            _pods("watch_stream_relists_total", "0x60"),
            Firing(
                {**IN_A, "resource": "pods"},
                "ops/a has not got its first complete list of pods. It is not ready, and does nothing before.",
            ),
        ),
        Case("the list took two minutes", "30m", _pods("watch_stream_relists_total", "0x2 1x60")),
    ),
    "MemcachedOperatorBlind": (
        Case(
            "one of two namespaces is silent",
            "4m",
            {
                f'watch_stream_last_byte_age_seconds{{{A},{PODS},scope="bank"}}': "20x60",
                f'watch_stream_last_byte_age_seconds{{{A},{PODS},scope="shop"}}': "0+60x60",
            },
            Firing({**IN_A, "resource": "pods"}, "No watch has brought ops/a a byte about pods for 4m 0s."),
        ),
        Case("bookmarks come", "30m", _pods("watch_stream_last_byte_age_seconds", "59x60")),
        Case("a watch that died is replaced", "12m", _pods("watch_stream_last_byte_age_seconds", "10x10 81 0x60")),
    ),
    "MemcachedOperatorUnreadableObjects": (
        Case("one comes by the watch", "90m", _unreadable("0x80 1x60", "0x200"), UNREADABLE),
        Case("one was in the first list, before the first scrape", "5m", _unreadable("1x60", "0x60"), UNREADABLE),
        Case("it was long ago", "150m", _unreadable("1x200", "0x200")),
        Case("there is none", "30m", _unreadable("0x60", "0x60")),
    ),
    "MemcachedOperatorFails": (
        Case(
            "one fails each six minutes",
            "60m",
            of_controller(controller_runtime_reconcile_errors_total="0 1x5 2x5 3x5 4x5 5x5 6x5 7x5 8x5 9x5 10x5"),
            Firing({"namespace": "ops"}, "Reconciles by the operator in ops have been failing for half an hour."),
        ),
        Case(
            "some failed for ten minutes",
            "45m",
            of_controller(controller_runtime_reconcile_errors_total="0x5 0+3x10 30x60"),
        ),
        Case(
            "another operator fails",
            "60m",
            {'controller_runtime_reconcile_errors_total{job="another",namespace="ops",controller="x"}': "0+1x60"},
        ),
    ),
    "MemcachedOperatorBug": (
        Case(
            "one was met",
            "20m",
            of_controller(controller_runtime_reconcile_panics_total="0x9 1x60"),
            Firing(IN_A, "ops/a has met an exception that is no error of the API. The log has its traceback."),
        ),
        Case("one was met two hours ago", "130m", of_controller(controller_runtime_reconcile_panics_total="0x9 1x200")),
    ),
    "MemcachedOperatorContention": (
        Case(
            "contention with short breaks",
            "25m",
            of_a(memcached_operator_contested_memcacheds="2 2 0 2 2 0 2 2 0 2 2 0 2 2 0 2 2 0 2 2 0 2 2 0 2 2"),
            Firing(
                {"namespace": "ops"},
                "Somebody rewrites a field of 2 Memcacheds that the operator in ops puts right again and again.",
            ),
        ),
        Case("contention of five minutes", "20m", of_a(memcached_operator_contested_memcacheds="0x4 1x4 0x60")),
    ),
    "MemcachedOperatorThrottled": (
        Case(
            "one request in five",
            "30m",
            _requests("0+40x60", "0+10x60", "429"),
            Firing(IN_A, "The API server has answered 20% of the requests of ops/a with 429, Too Many Requests."),
        ),
        Case("one request in a hundred", "30m", _requests("0+99x60", "0+1x60", "429")),
        Case("refusals of another kind", "30m", _requests("0+40x60", "0+10x60", "403")),
        Case("nothing is asked at all", "30m", _requests(NEVER, NEVER, "429")),
    ),
    "MemcachedOperatorRequestsFail": (
        Case(
            "errors of the server",
            "30m",
            _requests("0+30x60", "0+10x60", "503"),
            Firing(IN_A, "25% of the requests of ops/a were answered with an error of the server's, or not at all."),
        ),
        Case(
            "no answer",
            "30m",
            _requests("0x60", "0+10x60", "<error>"),
            Firing(IN_A, "100% of the requests of ops/a were answered with an error of the server's, or not at all."),
        ),
        Case("conflicts", "30m", _requests("0+30x60", "0+10x60", "409")),
        Case("a restart of the API server", "30m", _requests("0+30x60", "0x9 0+30x2 60x60", "503")),
    ),
    "MemcachedOperatorBacklog": (
        Case(
            "all workers are busy, and keys wait",
            "20m",
            _queue("40x60", "8x60"),
            Firing(IN_A, "40 Memcacheds wait for a worker of ops/a, and all of them have been busy for 15 minutes."),
        ),
        Case("a standby, whose keys wait and whose workers have not begun", "30m", _queue("40x60", "0x60")),
        Case("all workers are busy, and nothing waits", "30m", _queue("0x60", "8x60")),
        Case("a rush", "14m", _queue("500x9 0x60", "8x9 0x60")),
    ),
    "MemcachedOperatorStuck": (
        Case(
            "one goes on and on",
            "10m",
            _longest("0+60x60"),
            Firing(IN_A, "ops/a has been at one Memcached for 10m 0s."),
        ),
        Case("each ends within its minute", "30m", _longest("60x60")),
    ),
    "MemcachedOperatorEventsNotWritten": (
        Case(
            "events are refused",
            "30m",
            _events("write failed", "0+1x60"),
            Firing(
                {"namespace": "ops"},
                "The API server refuses the events of the operator in ops. Everything else goes on.",
            ),
        ),
        Case("too many at once", "30m", _events("queue full", "0+1x60")),
        Case("one was refused", "40m", _events("write failed", "0x9 1x60")),
    ),
}
