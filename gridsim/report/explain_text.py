"""Text on the wait of one job, for terminal and page."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gridsim.number_formatting import counted, duration, listed, number, percent
from gridsim.questions.explain import SHOWN, Explanation, Other
from gridsim.questions.replay import NEAR_SECONDS, agrees
from gridsim.questions.schedules import PLACES
from gridsim.record import Refusal
from gridsim.report.markup import text_table, texts
from gridsim.report.notices import resource_name

_text = texts("explain")
_STOPPED: dict[str, str] = text_table("explain", "stopped")
"""Texts on runs that were stopped, by what stopped them."""


def from_log(found: Explanation) -> list[str]:
    """Return text on the wait in the log and its agreement with the simulation; empty if the log has no starts.

    Examples
    --------
    >>> from gridsim.questions.explain import explain
    >>> from gridsim.questions.schedules import JobSchedule
    >>> from gridsim.record import Record
    >>> schedule = JobSchedule.of(Record.from_rows([dict(submit=0, start=63, end=90, cores=1)]))
    >>> logged = schedule._replace(logged_start=[855.0], logged_reason=["Licenses"])
    >>> from_log(explain(logged, 1))  # doctest: +NORMALIZE_WHITESPACE
    ['In the log, this job waited 14 min 15 s (reason Licenses); the simulation gives 1 min 3 s, so the explanation
    below is not that of the recorded wait.']
    """
    logged, wait = found.logged_wait, found.first_wait
    if logged is None:
        return []
    reason = f" (reason {found.logged_reason})" if found.logged_reason else ""
    first = " before its first run" if found.cut else ""
    waited = "did not start" if math.isnan(logged) else f"waited {duration(logged)}{first}{reason}"
    gives = "does not start it" if math.isnan(wait) else f"gives {duration(wait)}"
    text = f"In the log, this job {waited}; the simulation {gives}"
    if (math.isnan(logged) and math.isnan(wait)) or agrees(wait, logged):
        reasons = dict(found.reasons)  # a short wait may have none
        if not reason or found.logged_reason in reasons or (logged <= NEAR_SECONDS and not reasons):
            return [f"{text}, which agrees."]
        text += ", but for another reason"
    return [f"{text}, so the explanation below is not that of the recorded wait."]


def sentences(found: Explanation, label: str) -> list[str]:
    """Return the explanation as sentences."""
    of = f" of user {found.user}" if found.user else ""
    places = [f"{label} {name}" for label in PLACES if (name := getattr(found, label))]
    owner = f" ({', '.join(places)})" if places else ""
    asked = f"Job {_called(found)}{of}{owner} requested {counted(found.cores, 'core')}{_of(found)} for "
    asked += duration(found.estimate)
    if math.isnan(found.start):
        return [f"{asked}, and did not run under {label} ({_why_not(found)}).", *_dates(found)]
    runs = found.pieces + found.cut
    if found.wait <= 0 and runs == 1:
        return [f"{asked}, and started at once under {label}: {_free(found)}.", *_dates(found)]
    lines = [f"{asked}, and waited {duration(found.wait)} under {label}{_chain(found)}{_lost(found)}.", *_dates(found)]
    lines += _scheduler_reasons(found) if found.scope == "nodes" else _free_cores(found)
    if runs > 1:
        lines.append(_text("last_run", run=_run(found), start=found.start - found.submit))
    lines.append(_queue(found))
    if found.holders:
        all_of_it = found.scope in WHOLE or found.eligible >= found.machine
        there = "" if all_of_it else " there"
        jobs, were = ("job", "was") if len(found.holders) == 1 else ("jobs", "were")
        lines.append(f"While it waited, the {jobs} with the most core-hours{there} {were} {_listed(found.holders)}.")
    if found.exceeded:
        late = [f"{_short(one)} ({duration(beyond)})" for one, beyond in found.exceeded]
        lines.append(f"While it waited, these jobs exceeded their predicted run times: {listed(late)}.")
    if found.freeing:
        lines.append(f"It started when {listed([_short(one) for one in found.freeing])} ended.")
    return lines


def _chain(found: Explanation) -> str:
    return "" if found.pieces == 1 else f", summed over the {number(found.pieces)} pieces of its chain"


def _lost(found: Explanation) -> str:
    """Return text on stopped runs, whose time is not part of the wait."""
    if not found.cut:
        return ""
    several = len(found.stopped_by) > 1
    how = listed([f"{number(count)} {_STOPPED[why]}" if several else _STOPPED[why] for why, count in found.stopped_by])
    return f", in addition to {duration(found.lost)} in {counted(found.cut, 'run')} {f'({how})' if several else how}"


def _run(found: Explanation) -> str:
    """Return the name of the run that the start refers to, if there are several."""
    return "run" if found.cut else "piece"


def _dates(found: Explanation) -> list[str]:
    """Return the dates of submission and start, if the log has dates."""
    if not found.submitted:
        return []
    if not found.started:
        return [f"It was submitted at {found.submitted}."]
    if found.started == found.submitted:
        if found.wait <= 0:
            return [f"It was submitted and started at {found.submitted}."]
        return [f"It was submitted at {found.submitted} and started within the same second."]
    what = "started" if found.pieces + found.cut == 1 else f"its last {_run(found)} started"
    return [f"It was submitted at {found.submitted} and {what} at {found.started}."]


WHOLE = ("machine", "pooled")
"""Scopes that are the whole machine."""

MEANING = text_table("explain", "reasons")
"""Meaning of Slurm's reasons; all others are limits and named after them."""


def _of(found: Explanation) -> str:
    """Return the number of eligible cores."""
    place = found.scope
    if place == "nodes" and 0 <= found.eligible < found.machine:
        return f" of {number(found.eligible)} eligible (the machine has {number(found.machine)})"
    if place in (*WHOLE, "nodes"):
        return f" of {number(found.machine)}"
    return f" of {number(found.eligible)} in {place} (the machine has {number(found.machine)})"


def _free(found: Explanation) -> str:
    """Return the number and scope of cores that were free at submission."""
    place = found.scope
    if place == "nodes":
        return f"{_are(found.free)} free on eligible nodes"
    if place == "pooled":
        return f"{_are(found.free)} free in all partitions, which this policy treats as one pool"
    return f"{_are(found.free)} free" + ("" if place == "machine" else f" in {place}")


def _scheduler_reasons(found: Explanation) -> list[str]:
    """Return the reasons of the scheduler for the wait."""
    lines = [f"At its submission, {_free(found)}."]
    if not found.reasons:
        return lines
    parts = [_reason(word, held) for word, held in found.reasons]
    return [*lines, f"Reasons for its wait: {listed(parts)}."]


def _reason(word: str, held: float) -> str:
    if word == "None":
        return f"{duration(held)} until the next scheduling cycle"
    return f"{duration(held)} {word} ({MEANING.get(word, 'a limit of the site')})"


def _why_not(found: Explanation) -> str:
    """Return the status of a job that did not run, and the reason."""
    if found.refused is not None:
        return f"{found.status} because {refusal(found.refused)}"
    if found.status == "rejected" and found.cores > found.machine:
        return f"{found.status}: needs {counted(found.cores, 'core')}, the machine has {number(found.machine)}"
    return found.status


def refusal(why: Refusal) -> str:
    """Return the text of a rejection.

    Examples
    --------
    >>> refusal(Refusal("PartitionTimeLimit", 365 * 86400.0, 4 * 86400.0, "s", "MaxTime of partition long"))
    '365 d is above MaxTime 4 d of partition long'
    >>> refusal(Refusal("AccountNotAllowed", "account bio", None, "", "AllowAccounts of partition gpu"))
    'account bio is not allowed by AllowAccounts of partition gpu'
    """
    if why.most is None:
        if why.rule.startswith("nodes of "):
            return f"no {why.rule} can hold {why.requested}"
        return f"{why.requested} is not allowed by {why.rule}"
    asked, most = (_amount(float(value), why.unit) for value in (why.requested, why.most))
    name, of, whose = why.rule.partition(" of ")
    if name == "nodes":
        return f"{asked} are more than the {most} of the {why.rule}"
    return f"{asked} is above {name} {most}{of}{whose}"


def _amount(value: float, unit: str) -> str:
    return duration(value) if unit == "s" else f"{number(value)} {unit}"


def _called(found: Explanation) -> str:
    """Return the id known to users, and the number in files if it is different."""
    return found.id if found.id == str(found.job) else f"{found.id} (number {found.job})"


_LACKED: dict[str, str] = text_table("explain", "lacked")
"""Texts of missing constraints other than resources and pools."""


def _lacked(word: str) -> str:
    return _LACKED.get(word, f"it lacked only {resource_name(word)}")


def _free_cores(found: Explanation) -> list[str]:
    when = f"At its submission, {_free(found)}"
    if found.short_of:
        return [f"{when}; {_lacked(found.short_of)}."]
    if not found.enough > 0:
        return [f"{when}; until its start, there were never enough free cores for it."]
    kept = "there were enough, but the policy kept them for other jobs."
    if found.short > 0:
        short = f"For {duration(found.short)} there were too few free cores for it"
        lines = [f"{when}. {short}; for {duration(found.enough)} {kept}"]
    else:
        lines = [f"{when}; until its start {kept}"]
    if found.first:
        one = found.first[0]
        lines.append(_text("first_in_queue", one=one, job=_short(one)))
    return lines


def _queue(found: Explanation) -> str:
    many = {0: "No job", 1: "One job"}.get(found.ahead, f"{number(found.ahead)} jobs")
    text = f"{many} {'were' if found.ahead > 1 else 'was'} ahead of it in the queue"
    if found.ahead:
        text += f" ({_work(found.ahead_work)})"
    if not found.passed:
        return f"{text}; no later job started first."
    later = "One later job" if found.passed == 1 else f"{number(found.passed)} later jobs"
    largest = "the largest part by " if found.passed > 1 else ""
    most = f", {largest}{_short(found.passing[0])}" if found.passing else ""
    whose = f": {_whose(found)}" if found.passed > 1 and found.passers else ""
    return f"{text}. {later} started first ({_work(found.passed_work)}{most}){whose}."


def _whose(found: Explanation) -> str:
    """Return the owners of the jobs that passed, the first few users by name."""
    shown = [
        f"{number(count)} of {'the same user' if user == found.user else f'user {user}'}"
        for user, count in found.passers[:SHOWN]
    ]
    rest = found.passed - sum(count for _, count in found.passers[:SHOWN])
    return listed([*shown, *([f"{counted(rest, 'other')}"] if rest else [])])


def _listed(others: Sequence[Other]) -> str:
    return listed([f"{_short(one)} ({counted(one.cores, 'core')}, {percent(one.share)})" for one in others])


def _short(one: Other) -> str:
    return f"job {one.id}" + (f" of user {one.user}" if one.user else "")


def _are(count: int) -> str:
    return f"{counted(count, 'core')} {'was' if count == 1 else 'were'}"


def _work(core_seconds: float) -> str:
    hours = core_seconds / 3600
    return f"{number(hours) if hours >= 100 else f'{hours:.3g}'} core-hours"
