"""Every knob that any operator has, once: flags, environment variable, default, limits, help and why it is so.

A flag wins over the variable, the variable over the default. What a type cannot say stands in the field's `Knob`;
the command line, the messages and a page of reference are made from both (knobs.py). An operator with settings of its
own has a subclass.
"""

from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, create_model, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from operator_runtime.client.dns_names import LABEL_IN_WORDS
from operator_runtime.election.leader import Timing
from operator_runtime.identity import Program
from operator_runtime.process.knobs import Knob, KnobVariables, Switch
from operator_runtime.process.setting_values import (
    ADDRESS_IN_WORDS,
    DnsLabel,
    address,
    lower,
    not_empty,
    split_namespaces,
    without_unit,
)

# The two settings whose default follows from which operator it is.
OperatorName = Annotated[
    DnsLabel,
    Field(description="Name of this operator: its User-Agent, and the reporter of its events."),
    Knob(
        "What is made",
        why="One name for both, so that the audit log and the events can be laid side by side.",
        metavar="NAME",
        variable="OPERATOR_NAME",
        allowed=f"a name of {LABEL_IN_WORDS}",
    ),
]
ElectionId = Annotated[
    str | None,
    Field(
        min_length=1,
        max_length=253,
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
        description="Name of the Lease or of the ConfigMap. Replicas of one operator have the same.",
    ),
    Knob(
        "Leader election",
        why="Two operators of different names never wait for each other.",
        metavar="NAME",
        allowed="a name of at most 253 lower-case letters, digits, '-' and '.'",
        unset="the operator's name and `-lock`: {operator_name}-lock",
    ),
]


class RuntimeSettings(BaseSettings):
    """The settings of one operator. Immutable; a value outside its limits cannot be made.

    Which operator it is says `settings_of`, or a subclass by its `env_prefix` and by the default of `operator_name`.
    """

    model_config = SettingsConfigDict(frozen=True, extra="forbid", validate_default=True, env_prefix="OPERATOR_")

    kubeconfig: Annotated[
        str | None,
        Field(min_length=1, description="Kubeconfig file that names the API server and the credentials."),
        Knob(
            "Which API server",
            why="The order is the one that kubectl and client-go users know.",
            metavar="FILE",
            variable="KUBECONFIG",
            variable_read_elsewhere=True,
            allowed="a file's path; the variable may hold several, joined by ':'",
            unset="the pod's service account if its files are there, else ~/.kube/config",
        ),
    ] = None
    context: Annotated[
        str | None,
        Field(
            min_length=1, description="Context of the kubeconfig to use; naming one leaves a pod's service account out."
        ),
        Knob(
            "Which API server",
            why="What kubectl would talk to is what is meant, unless said otherwise.",
            metavar="NAME",
            allowed="the name of a context in the kubeconfig",
            unset="the kubeconfig's current context",
        ),
    ] = None
    service_account_dir: Annotated[
        Path,
        BeforeValidator(not_empty),
        Field(description="Folder with the pod's credentials (token, ca.crt, namespace), re-read as they rotate."),
        Knob(
            "Which API server",
            why="The kubelet mounts it there. Another folder lets in-cluster authentication run anywhere.",
            metavar="DIR",
            allowed="a folder's path",
        ),
    ] = Path("/var/run/secrets/kubernetes.io/serviceaccount")
    request_timeout_s: Annotated[
        float,
        Field(
            ge=1,
            le=600,
            description="How long one API call may take, in seconds. Watches have timers of their own.",
        ),
        Knob(
            "Which API server",
            why="An API server gives up on a call after 60 s; half of that frees a worker and bears a slow server.",
            metavar="SECONDS",
        ),
    ] = 30.0
    page_size: Annotated[
        int,
        Field(ge=10, le=10_000, description="Objects per page, where the API server does not stream its lists."),
        Knob(
            "Which API server",
            why="client-go's page size: few requests, and a page of Pods stays at a few MiB.",
            metavar="NUMBER",
        ),
    ] = 500

    watch_namespaces: Annotated[
        tuple[DnsLabel, ...] | None,
        BeforeValidator(split_namespaces),
        Field(
            description="Namespace to watch; may be repeated, or several joined by commas. Empty means all. "
            "With namespaces given, every request stays inside them, so that a Role is enough."
        ),
        Knob(
            "What is watched",
            why="An operator that was told nothing should not ask for rights on the whole cluster.",
            metavar="NAMESPACE",
            flags=("--watch-namespace", "-n", "--namespace"),
            variable="WATCH_NAMESPACE",
            empty_counts=True,
            repeatable=True,
            switches=(Switch(("--all-namespaces", "-A"), "", "Watch all namespaces; needs a ClusterRole."),),
            allowed=f"a namespace's name ({LABEL_IN_WORDS}); several are joined by commas, empty means all",
            unset="the operator's own namespace in a pod, the context's elsewhere",
        ),
    ] = None

    operator_name: OperatorName = "operator"

    workers: Annotated[
        int,
        Field(ge=1, le=256, description="How many objects a controller reconciles at the same time."),
        Knob(
            "How it works",
            why="A reconcile mostly waits for the API server; eight at once keep it busy without a crowd.",
            metavar="NUMBER",
        ),
    ] = 8
    reconcile_timeout_s: Annotated[
        float,
        Field(
            ge=1,
            le=3600,
            description="How long one reconcile may take before it is ended and retried, in seconds.",
        ),
        Knob(
            "How it works",
            why="Room for two API calls that each run into their timeout.",
            metavar="SECONDS",
        ),
    ] = 60.0
    shutdown_timeout_s: Annotated[
        float,
        Field(ge=0, le=3600, description="How long workers may finish what they do after SIGTERM, in seconds."),
        Knob(
            "How it works",
            why="Five seconds below a pod's default grace period of 30 s, after which the kubelet kills.",
            metavar="SECONDS",
        ),
    ] = 25.0
    watch_silence_limit_s: Annotated[
        float,
        Field(
            ge=1,
            le=3600,
            description="How long a watch may bring no byte before it is replaced, in seconds. "
            "/readyz fails when that does not help.",
        ),
        Knob(
            "How it works",
            why="An API server sends a bookmark each minute. Less makes every quiet watch begin anew.",
            metavar="SECONDS",
        ),
    ] = 70.0

    leader_elect: Annotated[
        bool,
        Field(description="Of several replicas let one work at a time; the others stand by with warm caches."),
        Knob("Leader election", why="A laptop runs one, and needs no rights on Leases.", metavar="true|false"),
    ] = False
    leader_elect_mode: Annotated[
        Literal["lease", "life"],
        BeforeValidator(lower),
        Field(
            description="lease: the leader renews a Lease, and another takes over when it does not. "
            "life: the leader's Pod owns a ConfigMap, and another takes over when that Pod is gone."
        ),
        Knob(
            "Leader election",
            why="It takes over in seconds, also from a leader that is stopped or cut off.",
            metavar="MODE",
        ),
    ] = "lease"
    leader_elect_id: ElectionId = None
    leader_elect_namespace: Annotated[
        DnsLabel | None,
        Field(description="Namespace of the Lease. Outside a cluster it must be given."),
        Knob(
            "Leader election",
            why="There the operator's account has rights of its own, whatever it watches.",
            metavar="NAMESPACE",
            allowed=f"a namespace's name ({LABEL_IN_WORDS})",
            unset="the operator's own namespace in a pod",
        ),
    ] = None
    leader_elect_lease_duration_s: Annotated[
        int,
        BeforeValidator(without_unit),
        Field(ge=1, le=3600, description="How long others wait after the leader's last sign of life, in seconds."),
        Knob(
            "Leader election",
            why="As in Kubernetes' own components: a leader that died is replaced within seconds.",
            metavar="SECONDS",
            flags=("--leader-elect-lease-duration-s", "--leader-elect-lease-duration"),
        ),
    ] = 15
    leader_elect_renew_deadline_s: Annotated[
        float,
        BeforeValidator(without_unit),
        Field(
            ge=0.5,
            le=3600,
            description="How long the leader may write after its last renewal, in seconds. "
            "At least a sixth less than the lease's duration; then it ends.",
        ),
        Knob(
            "Leader election",
            why="Two tries of five seconds, and five seconds for what was sent last to arrive.",
            metavar="SECONDS",
            flags=("--leader-elect-renew-deadline-s", "--leader-elect-renew-deadline"),
        ),
    ] = 10.0
    leader_elect_retry_period_s: Annotated[
        float,
        BeforeValidator(without_unit),
        Field(
            ge=0.1,
            le=3600,
            description="Time between two renewals, and between two tries, in seconds. "
            "At most half of the renew deadline.",
        ),
        Knob(
            "Leader election",
            why="As in Kubernetes' own components: half a small write a second.",
            metavar="SECONDS",
            flags=("--leader-elect-retry-period-s", "--leader-elect-retry-period"),
        ),
    ] = 2.0

    health_probe_bind_address: Annotated[
        str,
        AfterValidator(address),
        Field(description="Where /healthz and /readyz are answered. 0 turns them off."),
        Knob(
            "Probes and metrics",
            why="The port that operators' manifests commonly name.",
            metavar="ADDRESS",
            allowed=ADDRESS_IN_WORDS,
        ),
    ] = ":8081"
    metrics_bind_address: Annotated[
        str,
        AfterValidator(address),
        Field(description="Where /metrics is answered. 0 turns it off, and with it all counting."),
        Knob(
            "Probes and metrics",
            why="The port that operators' manifests commonly name.",
            metavar="ADDRESS",
            allowed=ADDRESS_IN_WORDS,
        ),
    ] = ":8080"
    metrics_secure: Annotated[
        bool,
        Field(
            description="Serve metrics by TLS, and only to who may get the non-resource URL /metrics. "
            "The API server is asked: who a token belongs to, and what that account may."
        ),
        Knob(
            "Probes and metrics",
            why="It takes the rights to create TokenReviews and SubjectAccessReviews, which a laptop's user may lack.",
            metavar="true|false",
        ),
    ] = False
    metrics_cert_dir: Annotated[
        Path | None,
        BeforeValidator(not_empty),
        Field(
            description="Folder with tls.crt and tls.key for --metrics-secure, as a mounted Secret has them; "
            "read again when they change."
        ),
        Knob(
            "Probes and metrics",
            why="Prometheus can be told not to check it, and a Secret is not everywhere.",
            metavar="DIR",
            allowed="a folder's path",
            unset="a certificate that the operator signs itself at its start; needs the extra `secure`",
        ),
    ] = None
    tracing_endpoint: Annotated[
        str | None,
        Field(
            pattern=r"^https?://\S+$",
            description="Where to send traces by OTLP over HTTP: a span for each reconcile, its API calls below it.",
        ),
        Knob(
            "Probes and metrics",
            why="Traces take a collector to send them to, and the extra `tracing`.",
            metavar="URL",
            variable="OTEL_EXPORTER_OTLP_ENDPOINT",
            allowed="the URL of an OTLP collector, without /v1/traces: http://localhost:4318",
            unset="no traces",
        ),
    ] = None

    log_format: Annotated[
        Literal["text", "json"],
        BeforeValidator(lower),
        Field(description="Log lines for people (text) or for machines (json), on standard error."),
        Knob("Logs", why="Who starts it by hand reads it; a manifest asks for json.", metavar="FORMAT"),
    ] = "text"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        BeforeValidator(lower),
        Field(description="Least level that is logged. Libraries log from warning on."),
        Knob(
            "Logs",
            why="info has a line for each change that was made and none for a look around.",
            metavar="LEVEL",
        ),
    ] = "info"

    @model_validator(mode="after")
    def _election_fits(self) -> "RuntimeSettings":
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
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, then the variables that the knobs name; no .env files, no secrets folder."""
        return init_settings, KnobVariables(settings_cls)


S = TypeVar("S", bound=RuntimeSettings)


def settings_of(model: type[S], program: Program) -> type[S]:
    """The model as the settings of this program: its variables' prefix, its name, and its lock's."""
    return create_model(
        model.__name__,
        __base__=model,
        __module__=model.__module__,
        __doc__=model.__doc__,
        __cls_kwargs__={"env_prefix": program.variable_prefix},
        operator_name=(OperatorName, program.name),
        leader_elect_id=(ElectionId, program.leader_election_id),
    )
