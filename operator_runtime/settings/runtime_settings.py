"""Settings that any operator has, each once: flags, environment variable, default, limits, help and why it is so.

A flag wins over the variable, the variable over the default. What a type cannot express stands in the field's
`Setting`; the command line, the messages and a page of reference are made from both. An operator with settings of its
own has a subclass.
"""

from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta

from operator_runtime.client.dns_names import LABEL_IN_WORDS
from operator_runtime.election.timing import LONGEST_LEASE_S, Timing
from operator_runtime.identity import Program
from operator_runtime.settings.schema import Schema
from operator_runtime.settings.setting import Setting, Switch
from operator_runtime.settings.values import (
    ADDRESS_IN_WORDS,
    DnsLabel,
    DnsSubdomain,
    Folder,
    NotEmpty,
    address,
    split_namespaces,
    without_unit,
)


class RuntimeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of every operator: `--help` has the meaning of each, `docs/settings.md` the reason. Immutable.

    Values are checked where they come from outside, by `schema_of`; which operator it is gives some of the defaults.
    Values that must fit together are checked in `__post_init__`, which raises ValueError with a line for each problem;
    that of a subclass calls this one.
    """

    kubeconfig: Annotated[
        NotEmpty | None,
        Setting(
            "Which API server",
            help="Kubeconfig file that names the API server and the credentials.",
            why="The order is the one that kubectl and client-go users know.",
            metavar="FILE",
            variable="KUBECONFIG",
            variable_read_elsewhere=True,
            allowed="a file's path; the variable may hold several, joined by ':'",
            unset="the pod's service account if its files are there, else ~/.kube/config",
        ),
    ] = None
    context: Annotated[
        NotEmpty | None,
        Setting(
            "Which API server",
            help="Context of the kubeconfig to use; naming one leaves a pod's service account out.",
            why="Without it, the operator uses the same cluster as kubectl.",
            metavar="NAME",
            allowed="the name of a context in the kubeconfig",
            unset="the kubeconfig's current context",
        ),
    ] = None
    service_account_dir: Annotated[
        Folder,
        Setting(
            "Which API server",
            help="Directory with the pod's credentials (token, ca.crt, namespace), re-read as they rotate.",
            why="The kubelet mounts it there. Another directory allows in-cluster authentication anywhere.",
            metavar="DIR",
            allowed="a folder's path",
        ),
    ] = "/var/run/secrets/kubernetes.io/serviceaccount"
    request_timeout_s: Annotated[
        float,
        Meta(ge=1, le=600),
        Setting(
            "Which API server",
            help="Timeout of one API request, in seconds. Watches have their own timeouts.",
            why="An API server gives up on a request after 60 s; half of that frees a worker and bears a slow server.",
            metavar="SECONDS",
        ),
    ] = 30.0

    watch_namespaces: Annotated[
        tuple[DnsLabel, ...] | None,
        Setting(
            "What is watched",
            help="Namespace to watch; may be repeated, or several joined by commas. Empty means all. "
            "With namespaces given, every request stays inside them, so that a Role is enough.",
            why="By default, an operator should not need permissions on the whole cluster.",
            metavar="NAMESPACE",
            flags=("--watch-namespace", "-n", "--namespace"),
            variable="WATCH_NAMESPACE",
            empty_counts=True,
            repeatable=True,
            switches=(Switch(("--all-namespaces", "-A"), "", "Watch all namespaces; needs a ClusterRole."),),
            allowed=f"a namespace's name ({LABEL_IN_WORDS}); several are joined by commas, empty means all",
            unset="the operator's own namespace in a pod, the context's elsewhere",
            read=split_namespaces,
        ),
    ] = None

    operator_name: Annotated[
        DnsLabel,
        Setting(
            "What is created",
            help="Name of this operator, used as its User-Agent and as the reporter of its events.",
            why="One name for both, so that the audit log and the events can be compared.",
            metavar="NAME",
            variable="OPERATOR_NAME",
            allowed=f"a name of {LABEL_IN_WORDS}",
        ),
    ] = "operator"

    workers: Annotated[
        int,
        Meta(ge=1, le=256),
        Setting(
            "How it works",
            help="Number of objects that a controller reconciles concurrently.",
            why="A reconcile mostly waits for the API server; 16 at a time use it well without overloading it.",
            metavar="NUMBER",
        ),
    ] = 16
    reconcile_timeout_s: Annotated[
        float,
        Meta(ge=1, le=3600),
        Setting(
            "How it works",
            help="Timeout of one reconcile, in seconds. It is then cancelled and retried.",
            why="Enough for two API requests that time out.",
            metavar="SECONDS",
        ),
    ] = 60.0
    shutdown_timeout_s: Annotated[
        float,
        Meta(ge=0, le=3600),
        Setting(
            "How it works",
            help="Time that workers have to finish after SIGTERM, in seconds.",
            why="Five seconds below a pod's default grace period of 30 s, after which the kubelet kills.",
            metavar="SECONDS",
        ),
    ] = 25.0
    watch_silence_limit_s: Annotated[
        float,
        Meta(ge=1, le=3600),
        Setting(
            "How it works",
            help="Time without a byte after which a watch is replaced, in seconds. "
            "/readyz fails if that does not help.",
            why="An API server sends a bookmark each minute. A lower value restarts every quiet watch.",
            metavar="SECONDS",
        ),
    ] = 70.0

    leader_elect: Annotated[
        bool,
        Setting(
            "Leader election",
            help="Enable leader election: one of several replicas is active, and the others wait with warm caches.",
            why="A laptop runs one replica, and needs no permissions on Leases.",
            metavar="true|false",
        ),
    ] = False
    leader_elect_mode: Annotated[
        Literal["lease", "life"],
        Setting(
            "Leader election",
            help="lease: the leader renews a Lease, and another takes over when it does not. "
            "life: the leader's Pod owns a ConfigMap, and another takes over when that Pod is gone.",
            why="It takes over in seconds, also from a leader that is stopped or disconnected.",
            metavar="MODE",
            read=str.lower,
        ),
    ] = "lease"
    leader_elect_id: Annotated[
        DnsSubdomain | None,
        Setting(
            "Leader election",
            help="Name of the Lease or of the ConfigMap. All replicas of one operator use the same name.",
            why="Two operators of different names never wait for each other.",
            metavar="NAME",
            allowed="a name of at most 253 lower-case letters, digits, '-' and '.'",
            unset="the operator's name and `-lock`: {operator_name}-lock",
        ),
    ] = None
    leader_elect_namespace: Annotated[
        DnsLabel | None,
        Setting(
            "Leader election",
            help="Namespace of the Lease. Outside a cluster it must be given.",
            why="There the operator's account has permissions of its own, whatever it watches.",
            metavar="NAMESPACE",
            allowed=f"a namespace's name ({LABEL_IN_WORDS})",
            unset="the operator's own namespace in a pod",
        ),
    ] = None
    leader_elect_lease_duration_s: Annotated[
        int,
        Meta(ge=1, le=LONGEST_LEASE_S),
        Setting(
            "Leader election",
            help="Time that other replicas wait after the leader's last renewal, in seconds.",
            why="As in Kubernetes' own components: a leader that died is replaced within seconds.",
            metavar="SECONDS",
            flags=("--leader-elect-lease-duration-s", "--leader-elect-lease-duration"),
            read=without_unit,
        ),
    ] = 15
    leader_elect_renew_deadline_s: Annotated[
        float,
        Meta(ge=0.5, le=3600),
        Setting(
            "Leader election",
            help="Time that the leader may write after its last renewal, in seconds. "
            "At least a sixth less than the lease's duration; then it ends.",
            why="Two tries of five seconds, and five seconds for what was sent last to arrive.",
            metavar="SECONDS",
            flags=("--leader-elect-renew-deadline-s", "--leader-elect-renew-deadline"),
            read=without_unit,
        ),
    ] = 10.0
    leader_elect_retry_period_s: Annotated[
        float,
        Meta(ge=0.1, le=3600),
        Setting(
            "Leader election",
            help="Time between two renewals, and between two tries, in seconds. At most half of the renew deadline.",
            why="As in Kubernetes' own components: half a small write a second.",
            metavar="SECONDS",
            flags=("--leader-elect-retry-period-s", "--leader-elect-retry-period"),
            read=without_unit,
        ),
    ] = 2.0

    health_probe_bind_address: Annotated[
        str,
        Setting(
            "Probes and metrics",
            help="Address that serves /healthz and /readyz. 0 disables them.",
            why="The port that operators' manifests commonly name.",
            metavar="ADDRESS",
            allowed=ADDRESS_IN_WORDS,
            read=address,
        ),
    ] = ":8081"
    metrics_bind_address: Annotated[
        str,
        Setting(
            "Probes and metrics",
            help="Address that serves /metrics. 0 disables it, and all metrics.",
            why="The port that operators' manifests commonly name.",
            metavar="ADDRESS",
            allowed=ADDRESS_IN_WORDS,
            read=address,
        ),
    ] = ":8080"
    metrics_secure: Annotated[
        bool,
        Setting(
            "Probes and metrics",
            help="Serve metrics by TLS, and only to accounts that may get the non-resource URL that they request, such "
            "as /metrics. The API server authenticates the token and authorizes its account.",
            why="It takes the permissions to create TokenReviews and SubjectAccessReviews, which a laptop's user may "
            "lack.",
            metavar="true|false",
        ),
    ] = False
    metrics_cert_dir: Annotated[
        Folder | None,
        Setting(
            "Probes and metrics",
            help="Folder with tls.crt and tls.key for --metrics-secure, as a mounted Secret has them; "
            "read again when they change.",
            why="Prometheus can skip its verification, and not every cluster has such a Secret.",
            metavar="DIR",
            allowed="a folder's path",
            unset="a certificate that the operator signs itself at its start; needs the extra `secure`",
        ),
    ] = None

    log_format: Annotated[
        Literal["text", "json"],
        Setting(
            "Logs",
            help="Log lines for people (text) or for machines (json), on standard error.",
            why="Text is readable in a terminal; the manifests set json.",
            metavar="FORMAT",
            read=str.lower,
        ),
    ] = "text"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Setting(
            "Logs",
            help="Minimum level that is logged. Libraries log from warning on.",
            why="info has a line for each change, and none for a reconcile that changes nothing.",
            metavar="LEVEL",
            read=str.lower,
        ),
    ] = "info"

    def __post_init__(self) -> None:
        timing = Timing(
            self.leader_elect_lease_duration_s, self.leader_elect_renew_deadline_s, self.leader_elect_retry_period_s
        )
        problems = timing.problems(
            lease="--leader-elect-lease-duration-s",
            renew_deadline="--leader-elect-renew-deadline-s",
            retry="--leader-elect-retry-period-s",
        )
        if problems:
            raise ValueError("\n".join(problems))


S = TypeVar("S", bound=RuntimeSettings)


def schema_of(model: type[S], program: Program) -> Schema[S]:
    """The settings of this program: its variables' prefix, its name, and its lock's.

    Raises:
        TypeError: the model is no subclass of RuntimeSettings, or lacks what settings need; a line for each mistake.
    """
    if not (isinstance(model, type) and issubclass(model, RuntimeSettings)):  # type: ignore[redundant-expr]
        raise TypeError(f"settings={model!r} is no subclass of RuntimeSettings")
    defaults = {"operator_name": program.name, "leader_elect_id": program.leader_election_id}
    return Schema(model, program.variable_prefix, defaults)
