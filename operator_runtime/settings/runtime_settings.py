"""Settings that any operator has, each once: flags, environment variable, default, limits, help and why it is so.

A flag wins over the variable, the variable over the default. The command line, the messages and a page of reference
are made from the declarations. An operator with settings of its own has a subclass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeVar, dataclass_transform

from operator_runtime.client.dns_names import LABEL_IN_WORDS, is_label, is_subdomain
from operator_runtime.settings.listen_address import parse_address
from operator_runtime.settings.setting import NotAllowedError, Switch, setting
from operator_runtime.settings.timing import LONGEST_LEASE_S, Timing

ADDRESS_IN_WORDS: Final = "HOST:PORT or :PORT with a port of at most 65535 (0: one that is free), or 0 for off"


def only(fits: Callable[[str], object]) -> Callable[[str], str]:
    """Make a reader of the texts that `fits` holds true."""

    def read(text: str) -> str:
        if not fits(text):
            raise ValueError(text)
        return text

    return read


def split_namespaces(text: str) -> tuple[str, ...]:
    """Makes ("a", "b") of "a,b", and () of "", which means all.

    An empty item, as in "a,", is refused: a template that lost a name must not widen what is watched. So is a blank,
    which the message shows as it is.
    """
    if not text:
        return ()
    names = tuple(dict.fromkeys(item.strip() for item in text.split(","))) if text.strip() else (text,)
    if wrong := [name for name in names if not is_label(name)]:
        raise NotAllowedError(*wrong)
    return names


def without_unit(text: str) -> str:
    """Makes "15" of "15s", as flags of this name are written elsewhere."""
    return text.strip().removesuffix("s")


def address(text: str) -> str:
    """Accepts what a server can listen on."""
    parse_address(text)
    return text


@dataclass_transform(kw_only_default=True, frozen_default=True)
@dataclass(frozen=True, kw_only=True)
class RuntimeSettings:
    """Settings of every operator: `--help` has the meaning of each, `docs/settings.md` the reason. Immutable.

    Values are checked where they come from outside, by `Schema`. Those that must fit together are checked in
    `__post_init__`, which raises ValueError with a line for each problem; that of a subclass calls this one.
    """

    def __init_subclass__(cls) -> None:
        """Make the annotated names of each subclass fields, too."""
        super().__init_subclass__()
        dataclass(frozen=True, kw_only=True)(cls)

    kubeconfig: str | None = setting(
        None,
        "Kubeconfig file that names the API server and the credentials.",
        "The order is the one that kubectl and client-go users know.",
        group="Which API server",
        metavar="FILE",
        variable="KUBECONFIG",
        variable_read_elsewhere=True,
        allowed="a file's path; the variable may hold several, joined by ':'",
        unset="the pod's service account if its files are there, else ~/.kube/config",
        read=only(bool),
    )
    context: str | None = setting(
        None,
        "Context of the kubeconfig to use; naming one leaves a pod's service account out.",
        "Without it, the operator uses the same cluster as kubectl.",
        metavar="NAME",
        allowed="the name of a context in the kubeconfig",
        unset="the kubeconfig's current context",
        read=only(bool),
    )
    service_account_dir: str = setting(
        "/var/run/secrets/kubernetes.io/serviceaccount",
        "Directory with the pod's credentials (token, ca.crt, namespace), re-read as they rotate.",
        "The kubelet mounts it there. Another directory allows in-cluster authentication anywhere.",
        allowed="a folder's path",
        read=only(str.strip),
    )
    request_timeout_s: float = setting(
        30.0,
        "Timeout of one API request, in seconds. Watches have their own timeouts.",
        "An API server gives up on a request after 60 s; half of that frees a worker and bears a slow server.",
        limits=(1, 600),
    )
    watch_namespaces: tuple[str, ...] | None = setting(
        None,
        "Namespace to watch; may be repeated, or several joined by commas. Empty means all. With namespaces "
        "given, every request stays inside them, so that a Role is enough.",
        "By default, an operator should not need permissions on the whole cluster.",
        group="What is watched",
        metavar="NAMESPACE",
        flags=("--watch-namespace", "-n", "--namespace"),
        variable="WATCH_NAMESPACE",
        none_of_several=Switch(("--all-namespaces", "-A"), "Watch all namespaces; needs a ClusterRole."),
        allowed=f"a namespace's name ({LABEL_IN_WORDS}); several are joined by commas, empty means all",
        unset="the operator's own namespace in a pod, the context's elsewhere",
        read=split_namespaces,
    )
    operator_name: str = setting(
        "operator",
        "Name of this operator, used as its User-Agent and as the reporter of its events.",
        "One name for both, so that the audit log and the events can be compared.",
        group="What is created",
        variable="OPERATOR_NAME",
        allowed=f"a name of {LABEL_IN_WORDS}",
        read=only(is_label),
    )
    workers: int = setting(
        16,
        "Number of objects that a controller reconciles concurrently.",
        "A reconcile mostly waits for the API server; 16 at a time use it well without overloading it.",
        group="How it works",
        limits=(1, 256),
    )
    reconcile_timeout_s: float = setting(
        60.0,
        "Timeout of one reconcile, in seconds. It is then cancelled and retried.",
        "Enough for two API requests that time out.",
        limits=(1, 3600),
    )
    shutdown_timeout_s: float = setting(
        25.0,
        "Time that workers have to finish after SIGTERM, in seconds.",
        "Five seconds below a pod's default grace period of 30 s, after which the kubelet kills.",
        limits=(0, 3600),
    )
    watch_silence_limit_s: float = setting(
        70.0,
        "Time without a byte after which a watch is replaced, in seconds. /readyz fails if that does not help.",
        "An API server sends a bookmark each minute. A lower value restarts every quiet watch.",
        limits=(1, 3600),
    )
    leader_elect: bool = setting(
        False,
        "Enable leader election: one of several replicas is active, and the others wait with warm caches.",
        "A laptop runs one replica, and needs no permissions on Leases.",
        group="Leader election",
    )
    leader_elect_mode: Literal["lease", "life"] = setting(
        "lease",
        "lease: the leader renews a Lease, and another takes over when it does not. life: the leader's Pod owns a"
        " ConfigMap, and another takes over when that Pod is gone.",
        "It takes over in seconds, also from a leader that is stopped or disconnected.",
    )
    leader_elect_id: str | None = setting(
        None,
        "Name of the Lease or of the ConfigMap. All replicas of one operator use the same name.",
        "Two operators of different names never wait for each other.",
        metavar="NAME",
        allowed="a name of at most 253 lower-case letters, digits, '-' and '.'",
        unset="the operator's name and `-lock`: {operator_name}-lock",
        read=only(is_subdomain),
    )
    leader_elect_namespace: str | None = setting(
        None,
        "Namespace of the Lease. Outside a cluster it must be given.",
        "There the operator's account has permissions of its own, whatever it watches.",
        allowed=f"a namespace's name ({LABEL_IN_WORDS})",
        unset="the operator's own namespace in a pod",
        read=only(is_label),
    )
    leader_elect_lease_duration_s: int = setting(
        15,
        "Time that other replicas wait after the leader's last renewal, in seconds.",
        "As in Kubernetes' own components: a leader that died is replaced within seconds.",
        limits=(1, LONGEST_LEASE_S),
        flags=("--leader-elect-lease-duration-s", "--leader-elect-lease-duration"),
        read=without_unit,
    )
    leader_elect_renew_deadline_s: float = setting(
        10.0,
        "Time that the leader may write after its last renewal, in seconds. At least a sixth less than the "
        "lease's duration; then it ends.",
        "Two tries of five seconds, and five seconds for what was sent last to arrive.",
        limits=(0.5, 3600),
        flags=("--leader-elect-renew-deadline-s", "--leader-elect-renew-deadline"),
        read=without_unit,
    )
    leader_elect_retry_period_s: float = setting(
        2.0,
        "Time between two renewals, and between two tries, in seconds. At most half of the renew deadline.",
        "As in Kubernetes' own components: half a small write a second.",
        limits=(0.1, 3600),
        flags=("--leader-elect-retry-period-s", "--leader-elect-retry-period"),
        read=without_unit,
    )
    health_probe_bind_address: str = setting(
        ":8081",
        "Address that serves /healthz and /readyz. 0 disables them.",
        "The port that operators' manifests commonly name.",
        group="Probes and metrics",
        allowed=ADDRESS_IN_WORDS,
        read=address,
    )
    metrics_bind_address: str = setting(
        ":8080",
        "Address that serves /metrics. 0 disables it, and all metrics.",
        "The port that operators' manifests commonly name.",
        allowed=ADDRESS_IN_WORDS,
        read=address,
    )
    metrics_secure: bool = setting(
        False,
        "Serve metrics by TLS, and only to accounts that may get the non-resource URL that they request, such as "
        "/metrics. The API server authenticates the token and authorizes its account.",
        "It takes the permissions to create TokenReviews and SubjectAccessReviews, which a laptop's user may lack.",
    )
    metrics_cert_dir: str | None = setting(
        None,
        "Folder with tls.crt and tls.key for --metrics-secure, as a mounted Secret has them; read again when they"
        " change.",
        "Prometheus can skip its verification, and not every cluster has such a Secret.",
        allowed="a folder's path",
        unset="a certificate that the operator signs itself at its start; needs the extra `secure`",
        read=only(str.strip),
    )
    log_format: Literal["text", "json"] = setting(
        "text",
        "Log lines for people (text) or for machines (json), on standard error.",
        "Text is readable in a terminal; the manifests set json.",
        group="Logs",
    )
    log_level: Literal["debug", "info", "warning", "error"] = setting(
        "info",
        "Minimum level that is logged. Libraries log from warning on.",
        "info has a line for each change, and none for a reconcile that changes nothing.",
    )

    @property
    def timing(self) -> Timing:
        """Lengths of an election by a Lease."""
        return Timing(
            self.leader_elect_lease_duration_s, self.leader_elect_renew_deadline_s, self.leader_elect_retry_period_s
        )

    def __post_init__(self) -> None:
        if problems := self.timing.problems():
            raise ValueError("\n".join(problems))


S = TypeVar("S", bound=RuntimeSettings)
