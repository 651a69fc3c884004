"""Pure: the condition Serving, and the versions in the status, by what the servers of a Memcached answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from memcached_operator.api.status import SERVING, Reason, first_names
from memcached_operator.servers.certificates import Shown, day_of, missing_names, stale_from_s
from memcached_operator.servers.stats_cache import AnswerVerdict, ServerHealth
from operator_runtime import Condition

# That servers are not queried means nothing for them, and is over as soon as they are.
_REPORTED: Final = (
    Reason.ANSWERING,
    Reason.NOT_ANSWERING,
    Reason.CONNECTIONS_EXHAUSTED,
    Reason.DISK_IMPAIRED,
    Reason.CERTIFICATE_EXPIRED,
    Reason.CERTIFICATE_STALE,
    Reason.UNREACHABLE,
    Reason.CREDENTIALS_MISSING,
)
_VERSIONS: Final = 8
_NONE = "No server is ready."
_NOT_YET = "Some ready servers have not answered yet."
_ANSWERING = "All ready servers answer."


NOT_QUERIED: Final = Condition(
    SERVING, "Unknown", Reason.NOT_QUERIED, "Servers are not queried, because --server-stats-interval-s is 0."
)


def serving_condition(
    servers: Sequence[ServerHealth],
    last: Condition | None,
    now_s: float = 0.0,
    names: Sequence[str] = (),
    *,
    rolling: bool = False,
) -> Condition:
    """The condition Serving where servers are queried, which else is `NOT_QUERIED`.

    What was reported of servers stays until as much is known again: an operator that begins, or new servers, make no
    noise.

    Args:
        rolling: servers are being replaced, so that they may well show different certificates.
    """
    if not servers:
        return Condition(SERVING, "Unknown", Reason.NOT_QUERIED, _NONE)
    return (
        _not_serving(servers)
        or _bad_certificate(servers, last, now_s, rolling=rolling)
        or _unknown(servers, last, names)
        or Condition(SERVING, "True", Reason.ANSWERING, _ANSWERING + _lacking(servers, names))
    )


def _not_serving(servers: Sequence[ServerHealth]) -> Condition | None:
    """Problem that keeps clients from some servers, or slows them down; None for none."""
    failing, exhausted = _of(servers, AnswerVerdict.FAILING), _of(servers, AnswerVerdict.EXHAUSTED)
    impaired = [each for each in servers if each.disk]
    found = []
    if failing:
        message = f"{len(failing)} of {len(servers)} ready servers do not answer: {_named(failing)}."
        found.append((Reason.NOT_ANSWERING, message))
    if exhausted:
        names = first_names([each.pod for each in exhausted])
        message = (
            f"{len(exhausted)} of {len(servers)} servers have reached spec.maxConnections and turn connections away: "
            f"{names}."
        )
        found.append((Reason.CONNECTIONS_EXHAUSTED, message))
    if impaired:
        words = first_names([f"{each.pod} ({each.disk})" for each in impaired])
        message = f"The disks of {len(impaired)} of {len(servers)} servers are slow or damaged: {words}."
        found.append((Reason.DISK_IMPAIRED, message))
    if not found:
        return None
    return Condition(SERVING, "False", found[0][0], " ".join(message for _, message in found))


def _unknown(servers: Sequence[ServerHealth], last: Condition | None, names: Sequence[str]) -> Condition | None:
    """Reason for which it is not known whether all servers answer; None where it is."""
    if out_of_reach := _of(servers, AnswerVerdict.OUT_OF_REACH):
        message = (
            f"No server can be connected to from the operator ({out_of_reach[0].why}): the operator runs outside the "
            "pods' network, or a NetworkPolicy blocks it."
        )
        return Condition(SERVING, "Unknown", Reason.UNREACHABLE, message)
    if denied := _of(servers, AnswerVerdict.DENIED):
        message = f"{len(denied)} of {len(servers)} servers cannot be queried: {_named(denied)}."
        return Condition(SERVING, "Unknown", Reason.CREDENTIALS_MISSING, message + _lacking(servers, names))
    if not _of(servers, AnswerVerdict.UNKNOWN):
        return None
    if last is not None and last.reason in _REPORTED:
        return Condition(SERVING, last.status, last.reason, last.message)
    return Condition(SERVING, "Unknown", Reason.NOT_QUERIED, _NOT_YET)


def _of(servers: Sequence[ServerHealth], verdict: AnswerVerdict) -> list[ServerHealth]:
    return [each for each in servers if each.verdict is verdict]


def certificates(servers: Sequence[ServerHealth]) -> list[Shown]:
    return [each.shown for each in servers if each.shown is not None]


def _bad_certificate(
    servers: Sequence[ServerHealth], last: Condition | None, now_s: float, *, rolling: bool
) -> Condition | None:
    """Return the problem of the certificates that the servers show, None for nothing."""
    shown = certificates(servers)
    if not shown:
        return None
    having = [(each.pod, each.shown) for each in servers if each.shown is not None]
    if expired := [(pod, one) for pod, one in having if one.certificate.not_after <= now_s]:
        words = first_names([f"{pod} (on {day_of(one.certificate.not_after)})" for pod, one in expired])
        message = f"The certificates of {len(expired)} of {len(servers)} servers have expired: {words}."
        return Condition(SERVING, "False", Reason.CERTIFICATE_EXPIRED, message)
    # A new leader has not seen for how long they are late, and takes nothing back for that.
    is_reported = last is not None and last.reason == Reason.CERTIFICATE_STALE
    late = ((pod, one, stale_from_s(one, shown)) for pod, one in having)
    stale = [(pod, one) for pod, one, from_s in late if from_s is not None and (is_reported or now_s >= from_s)]
    if rolling or not stale:
        return None
    newest = max((each.certificate for each in shown), key=lambda each: each.not_before)
    words = first_names([f"{pod} (expires on {day_of(one.certificate.not_after)})" for pod, one in stale])
    message = (
        f"{len(stale)} of {len(servers)} servers have served an older certificate than the others for ten minutes: "
        f"{words}. The others' expires on {day_of(newest.not_after)}."
    )
    return Condition(SERVING, "False", Reason.CERTIFICATE_STALE, message)


def _lacking(servers: Sequence[ServerHealth], names: Sequence[str]) -> str:
    """A sentence on the first server whose certificate lacks names that clients use, "" where there is none."""
    seen = set[str]()
    for each in servers:
        if each.shown is None or each.shown.certificate.fingerprint in seen:
            continue
        seen.add(each.shown.certificate.fingerprint)
        if missing := missing_names(each.shown.certificate, names):
            return (
                f" The certificate of {each.pod} lacks names that clients use: {first_names(missing)}. Clients that "
                "verify it refuse connections by these names; add them to its dnsNames."
            )
    return ""


def versions(servers: Sequence[ServerHealth], last: str | None) -> str | None:
    """The releases that the servers run, such as `1.6.45`; while any is not known, those that were reported last."""
    if not servers or not all(each.version for each in servers):
        return last
    return ", ".join(sorted({each.version for each in servers})[:_VERSIONS])


def _named(servers: Sequence[ServerHealth]) -> str:
    return first_names([f"{each.pod} ({each.why})" for each in servers])
