"""Wait reasons of requests, in Slurm's terms, with their time intervals.

Scheduling cycles write a reason for each entry that they test and do not start; changes are recorded after each cycle.
No decision depends on them.

Sources: slurm.schedmd.com/job_reason_codes.html and squeue(1), "JOB REASON CODES". As in Slurm, the reason is
*Priority* for a job behind a waiting job of its partition, and other reasons stay until the job is tested again.
Unlike in Slurm, which still shows the last reason, it is *None* for a job that nothing holds back any more, until the
cycle that starts it.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.machine.njit import njit_noalloc
from gridsim.model.time import NEVER, IntArray
from gridsim.policy.slurm.tres import over_limit

_GROUP = {
    "cpu": ("CpuLimit", "CPUMinutesLimit", "CPURunMinutesLimit"),
    "mem": ("MemLimit", "MemMinutes", "MemRunMinutes"),
    "node": ("NodeLimit", "NodeMinutes", "NodeRunMinutes"),
    "gres": ("GRES", "GRESMinutes", "GRESRunMinutes"),
    "billing": ("Billing", "BillingMinutes", "BillingRunMinutes"),
    "license": ("License", "LicenseMinutes", "LicenseRunMinutes"),
}
"""Limits of a group by kind of resource: at once, over time, of running jobs."""
_EACH = {"cpu": "Cpu", "mem": "Memory", "node": "Node", "gres": "GRES", "billing": "Billing", "license": "License"}
_FIRST = ("QOSGrpCpuLimit", "QOSMaxCpuPerUserLimit", "MaxCpuPerAccount", "AssocGrpCpuLimit")


def tres_word(kind: str, name: str, over: int = 0) -> str:
    """Return Slurm's reason for a limit of a resource: held at once (0), used (1), or held times remaining time (2).

    Examples
    --------
    >>> tres_word("qos", "gres/gpu"), tres_word("account", "cpu", 1), tres_word("qos user", "mem")
    ('QOSGrpGRES', 'AssocGrpCPUMinutesLimit', 'QOSMaxMemoryPerUser')
    """
    of = name.partition("/")[0]
    if kind == "licences":
        return "Licenses"
    if kind in ("qos user", "qos account"):
        if kind == "qos account":
            return f"Max{_EACH[of]}PerAccount"
        return f"QOSMax{_EACH[of]}PerUser" + ("Limit" if of in ("cpu", "node") else "")
    return f"{'QOS' if kind == 'qos' else 'Assoc'}Grp{_GROUP[of][over]}"


_OF_TRES = tuple(
    word
    for kind, overs in (("qos", (0, 1, 2)), ("qos user", (0,)), ("qos account", (0,)), ("account", (0, 1, 2)))
    for over in overs
    for name in _GROUP
    if (word := tres_word(kind, name, over)) not in _FIRST
)

WORDS = (
    "",
    "JobArrayTaskLimit",
    "QOSGrpCpuLimit",
    "QOSGrpJobsLimit",
    "QOSMaxCpuPerUserLimit",
    "QOSMaxJobsPerUserLimit",
    "MaxCpuPerAccount",
    "MaxJobsPerAccount",
    "AssocGrpCpuLimit",
    "AssocGrpJobsLimit",
    "AssocMaxJobsLimit",
    *_OF_TRES,
    "Licenses",
    "None",
    "Priority",
    "Resources",
    "ReqNodeNotAvail",
    "Reservation",
    "BeginTime",
    "Dependency",
)
"""Reasons by code. If several limits hold a request back, the first one is reported."""

OVER = 0
LICENSES = WORDS.index("Licenses")
NONE, PRIORITY, RESOURCES, NOT_AVAILABLE, RESERVATION, BEGIN_TIME, DEPENDENCY = range(len(WORDS) - 7, len(WORDS))


class ReasonCodes(NamedTuple):
    """Reasons written by scheduling cycles.

    Attributes
    ----------
    code : (r,) int64
        Present row of `WORDS` for each request.
    changed : (k,) int64
        Requests whose code has changed in this cycle, the first ``counts[0]``.
    counts : (1,) int64
        Number of changed requests.
    """

    code: IntArray
    changed: IntArray
    counts: IntArray


@njit_noalloc
def note(request, code, reasons):  # type: ignore[no-untyped-def]
    """Set the wait reason of a request."""
    if reasons.code[request] != code:
        reasons.code[request] = code
        reasons.changed[reasons.counts[0]] = request
        reasons.counts[0] += 1


@njit_noalloc
def limit_of(entry, cores, limits):  # type: ignore[no-untyped-def]
    """Return the code of the limit that holds an entry back, 0 if none does."""
    found = 0
    for place in range(limits.first[entry], limits.first[entry + 1]):
        counter, code = limits.counter[place], 0
        if limits.jobs_used[counter] + 1 > limits.jobs[counter]:
            code = limits.jobs_code[counter]
        elif limits.cores_used[counter] + cores > limits.cores[counter]:
            code = limits.cores_code[counter]
        elif len(limits.tres.resource):
            column = over_limit(entry, counter, limits.tres)
            code = limits.tres.code[counter, column] if column >= 0 else 0
        if code > 0 and (found == 0 or code < found):
            found = code
    return found


@njit_noalloc
def is_limit(code):  # type: ignore[no-untyped-def]
    """Return whether a code is that of a limit."""
    return 0 < code < NONE


@njit_noalloc
def behind(entry, demands, limits, reasons):  # type: ignore[no-untyped-def]
    """Set the wait reason of an entry behind a blocking one."""
    request = demands.request[entry]
    limit = limit_of(entry, demands.cores[entry], limits)
    if limit > 0:
        note(request, limit, reasons)
    elif is_limit(reasons.code[request]) or reasons.code[request] in (NONE, RESOURCES):
        note(request, PRIORITY, reasons)


class Diary:
    """Recorded wait reasons of a run.

    Parameters
    ----------
    requests, entries : int
        Numbers of requests and entries.

    Attributes
    ----------
    reasons : ReasonCodes
        Arrays for the scheduling cycles.
    """

    def __init__(self, requests: int, entries: int) -> None:
        code: IntArray = np.zeros(requests, dtype=np.int64)
        self.reasons = ReasonCodes(code, np.zeros(2 * entries + 1, dtype=np.int64), np.zeros(1, dtype=np.int64))
        self._request, self._code, self._at = array("q"), array("q"), array("q")
        self._eligible: IntArray = np.full(requests, -NEVER)

    def resume(self, entries: int) -> None:
        """Continue with a larger number of entries, after all changes were recorded."""
        self.reasons = self.reasons._replace(changed=np.zeros(2 * entries + 1, dtype=np.int64))

    def say(self, request: int, code: int, now: int) -> None:
        """Record a wait reason."""
        if code == NONE:
            self._eligible[request] = now
        self.reasons.code[request] = code
        self._request.append(request)
        self._code.append(code)
        self._at.append(now)

    def seen(self, now: int) -> None:
        """Record the reasons that a cycle has set."""
        count = int(self.reasons.counts[0])
        if not count:
            return
        self.reasons.counts[0] = 0
        changed = self.reasons.changed[:count]
        self._request.frombytes(changed.tobytes())
        self._code.frombytes(self.reasons.code[changed].tobytes())
        self._at.frombytes(np.full(count, now, dtype=np.int64).tobytes())

    def start(self, request: int, last: int, opened: int, now: int) -> None:
        """Record the start of a request, which since *opened* has waited only for this cycle.

        Requests that were left by the previous cycle of this kind, at *last*, waited for another reason until then.
        """
        since = max(opened, int(self._eligible[request]))
        if last < since < now:
            self.say(request, NONE, since)
        self.say(request, OVER, now)

    def spans(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Return request, code, begin and end of each reason, by request and time; `NEVER` if it lasted to the end."""
        columns = [np.frombuffer(column, dtype=np.int64) for column in (self._request, self._code, self._at)]
        order = np.argsort(columns[0], kind="stable")
        request, code, at = (column[order] for column in columns)
        alive = _not_overruled(request, at)
        request, code, at = request[alive], code[alive], at[alive]
        new = np.ones(len(request), dtype=bool)
        new[1:] = (request[1:] != request[:-1]) | (code[1:] != code[:-1])
        request, code, at = request[new], code[new], at[new]
        until = np.full(len(at), NEVER)
        same = request[1:] == request[:-1]
        until[:-1][same] = at[1:][same]
        kept = code != OVER
        return request[kept], code[kept], at[kept], until[kept]


def _not_overruled(request: IntArray, at: IntArray) -> npt.NDArray[np.bool_]:
    """Return rows that no later row of the same request replaces; later rows can have an earlier instant."""
    if not len(request):
        return np.zeros(0, dtype=bool)
    times = np.unique(at, return_inverse=True)[1].reshape(-1).astype(np.int64)
    key = times + request * (int(times.max()) + 2)
    # From the last row back: keys of earlier requests are lower than all keys seen so far.
    later = np.minimum.accumulate(key[::-1])[::-1]
    following = np.append(later[1:], np.iinfo(np.int64).max)
    alive: npt.NDArray[np.bool_] = key < following
    return alive


def codes_of(kind: str) -> tuple[int, int]:
    """Return the codes of a limit on jobs and of one on cores, by the kind of the counter (`Limits`)."""
    jobs, cores = {
        "array": ("JobArrayTaskLimit", "JobArrayTaskLimit"),
        "licences": ("Licenses", "Licenses"),
        "user": ("AssocMaxJobsLimit", "AssocGrpCpuLimit"),
        "account": ("AssocGrpJobsLimit", "AssocGrpCpuLimit"),
        "qos": ("QOSGrpJobsLimit", "QOSGrpCpuLimit"),
        "qos user": ("QOSMaxJobsPerUserLimit", "QOSMaxCpuPerUserLimit"),
        "qos account": ("MaxJobsPerAccount", "MaxCpuPerAccount"),
    }[kind]
    return WORDS.index(jobs), WORDS.index(cores)
