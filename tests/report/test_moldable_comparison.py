"""Benefit of moldable jobs by group, in sentences, on the page and in the chart."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gridsim.ask import compare
from gridsim.metrics.groups import weight_classes
from gridsim.model.moldable import Moldable
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.random_streams import stream
from gridsim.model.speedup import Linear
from gridsim.model.tasks import Tasks
from gridsim.model.workload import Workload
from gridsim.questions.evidence import GroupRow
from gridsim.record import Record
from gridsim.report import gantt, page, robustness
from gridsim.report.comparison import Comparison
from gridsim.report.tables import changed
from gridsim.workload.transform.moldable import MoldableJobs

pytestmark = pytest.mark.long

CORES = 64
POLICIES = ["conservative", "moldable-combined", "moldable-greedy"]


def log(jobs: int = 900) -> Workload:
    rng = stream(4, "moldable report")
    cores = np.minimum(CORES, (2 ** rng.exponential(2.0, jobs)).astype(int))
    runtime = np.rint(rng.lognormal(6.0, 1.5, jobs).clip(1, 30_000))
    span = float(cores @ runtime) / (CORES * 0.7)
    return Workload.from_columns(submit=np.sort(np.rint(rng.uniform(0, span, jobs))), runtime=runtime, cores=cores)


@pytest.fixture(scope="module")
def moldable() -> Comparison:
    workload = MoldableJobs(range_factor=2, sigma=1, cores=CORES).apply(log())
    return compare(workload, POLICIES, platform=Platform.single(CORES))


@pytest.fixture(scope="module")
def rigid() -> Comparison:
    return compare(log(300), ["conservative", "easy"], platform=Platform.single(CORES))


# -- categories --------------------------------------------------------------------------------------------------------


def test_a_bound_belongs_to_the_lighter_category() -> None:
    rows = [{"submit": 0, "start": 0, "end": end, "cores": 2} for end in (50, 50.5, 150, 328_050, 328_051)]
    groups = weight_classes(Record.from_rows(rows))
    assert groups.index.tolist() == [0, 1, 1, 8, 9]
    assert (len(groups), groups.names[0], groups.names[-1]) == (10, "up to 100", "above 656,100")


def test_a_job_has_the_same_category_whatever_it_got(moldable: Comparison) -> None:
    first, *others = (weight_classes(record) for record in moldable.records.values())
    for other in others:
        assert np.array_equal(first.index, other.index)
    assert any((record.given != record.workload.cores).any() for record in moldable.records.values())


def test_changes_are_those_of_the_mean_responses_of_the_same_jobs(moldable: Comparison) -> None:
    found = moldable.by_weight()
    base, groups = moldable.records["conservative"], weight_classes(moldable.records["conservative"])
    for category in found:
        name = category.name
        rows = np.ones(len(base), bool) if name == "all" else groups.index == groups.names.index(name)
        assert category.jobs == rows.sum() >= robustness.FEWEST
        for label in POLICIES[1:]:
            response = moldable.records[label].response[rows].mean()
            assert category.changes[label] == pytest.approx(response / base.response[rows].mean() - 1)
    large = [name for row, name in enumerate(groups.names) if (groups.index == row).sum() >= robustness.FEWEST]
    assert [category.name for category in found] == [*large, "all"]
    assert 4 < len(large) < 10, "some category is too small"


# -- words -------------------------------------------------------------------------------------------------------------


def row(group: str, ratio: float, verdict: Any, *, policy: str = "new", jobs: int = 500) -> GroupRow:
    return GroupRow("weight", group, policy, "old", jobs, ratio, 1.0, ratio, 0.9 * ratio, 2 * ratio, 0.5, verdict, 90)


def told(comparison: Comparison, rows: Sequence[GroupRow]) -> list[str]:
    one = next(iter(comparison.records.values()))
    return list(robustness.answer(replace(comparison, records={"old": one, "new": one}, groups=list(rows), order=())))


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (
            [row("up to 100", 1.4, "worse"), row("100-300", 0.5, "better")],
            "Not robust: new is significantly worse than old (threshold: 5 % and 1 min) "
            "for 1 of 2 weight categories of jobs (up to 100 core-seconds "
            "by 40 %).",
        ),
        (
            [row("up to 100", 0.9, "no clear difference"), row("100-300", 0.5, "better")],
            "Robust in this log: new is significantly worse than old (threshold: 5 % and 1 min) "
            "for none of 2 weight categories of jobs; the mean is longer in "
            "none (10 to 50 % shorter).",
        ),
        (
            [row("up to 100", 1.1, "too little data"), row("100-300", 1.02, "no clear difference")],
            "Robust in this log: new is significantly worse than old (threshold: 5 % and 1 min) "
            "for none of 2 weight categories of jobs; the mean is longer in "
            "2 (up to 100 core-seconds by 10 %, 100-300 core-seconds by 2 %); 1 of them has too little data.",
        ),
        (
            [row("up to 100", 1.1, "too little data"), row("100-300", 1.02, "too little data")],
            "The log is too short to show whether new is robust: of 2 weight categories of jobs, the mean response in "
            "this log is longer in 2 (up to 100 core-seconds by 10 %, 100-300 core-seconds by 2 %) than under old.",
        ),
        (
            [
                row("up to 100", 0.9, "too little data"),
                row("100-300", 0.8, "too little data"),
                row("300-900", 0.7, "better"),
            ],
            "The log is too short to show whether new is robust: of 3 weight categories of jobs, the mean response in "
            "this log is longer in none (10 to 30 % shorter) than under old.",
        ),
        ([row("up to 100", 9.0, "worse", jobs=9)], None),
    ],
)
def test_the_verdict_is_one_sentence_that_says_what_is_not_known(
    moldable: Comparison, rows: list[GroupRow], sentence: str | None
) -> None:
    assert told(moldable, rows) == ([] if sentence is None else [sentence])


def test_several_policies_have_one_sentence_together(moldable: Comparison) -> None:
    one = next(iter(moldable.records.values()))
    rows = [row("up to 100", 1.4, "worse", policy="a"), row("100-300", 0.5, "better", policy="a")]
    rows += [row("up to 100", 1.4, "no clear difference", policy="b"), row("100-300", 1, "too little data", policy="b")]
    rows += [row("up to 100", 1.4, "too little data", policy="c")]
    several = replace(moldable, records=dict.fromkeys(("old", "a", "b", "c"), one), groups=rows, order=())
    assert list(robustness.answer(several)) == [
        "By weight categories of jobs against old: robust in this log: b (1 of 2 undecided); not robust: a "
        "(significantly worse in 1 of 2); inconclusive, as the log is too short: c."
    ]


def test_the_answer_is_about_responses_and_has_a_verdict_on_each_policy(moldable: Comparison) -> None:
    sentences = moldable.sentences()
    assert moldable.headline == "response"
    assert moldable.means["moldable-greedy"] == moldable.metrics["moldable-greedy"]["response_mean"]
    assert sentences[0].startswith(
        "The log does not show whether jobs have longer responses under moldable-combined or under conservative: 56 % "
        "less under moldable-combined in this log ("
    )
    assert not any("slowdown" in sentence or "waits least" in sentence for sentence in sentences)
    (verdict,) = (it for it in sentences if "weight categories of jobs" in it)
    assert all(label in verdict for label in POLICIES[1:])
    assert [row.metric for row in moldable.table()][:2] == ["response_mean", "response_median"]


def test_rigid_jobs_are_reported_as_ever(rigid: Comparison) -> None:
    assert rigid.headline == "wait"
    assert rigid.by_weight() == []
    assert {row.kind for row in rigid.groups} == {"size", "length"}
    assert {it.metric for it in rigid.differences} == {"wait", "bounded_slowdown"}
    assert not any("weight" in sentence for sentence in rigid.sentences())
    text = page.render(rigid)
    assert "by the weight of the jobs" not in text
    assert "Bounded slowdowns" in text
    assert all("cores" not in packed for packed in gantt.pack(rigid.records)["policies"])


# -- the page ----------------------------------------------------------------------------------------------------------


def test_the_page_has_the_changes_of_all_categories(moldable: Comparison) -> None:
    text = page.render(moldable)
    assert "Change of the mean response relative to conservative" in text
    for category in moldable.by_weight():
        for label in POLICIES[1:]:
            assert f">{changed(category, label)}" in text
    assert "Response times" in text
    assert "By weight" in text


def unpacked(column: dict[str, Any], deflated: bool) -> npt.NDArray[Any]:
    raw = base64.b64decode(column["data"])
    return np.frombuffer(zlib.decompress(raw) if deflated else raw, dtype=f"<{column['type']}")


def test_the_chart_has_the_cores_that_jobs_got_where_they_are_not_those_requested(moldable: Comparison) -> None:
    pack = gantt.pack(moldable.records)
    rigid, *sized = pack["policies"]
    assert "cores" not in rigid, "conservative gives what is asked for"
    for packed, label in zip(sized, POLICIES[1:], strict=True):
        got = unpacked(packed["cores"], pack["deflated"])
        assert np.array_equal(got, moldable.records[label].given)
    assert np.array_equal(unpacked(pack["columns"]["cores"], pack["deflated"]), log().cores)


def tasks_comparison() -> Comparison:
    tasks = Tasks.from_edges(
        counts=[2, 2], runtime=[8, 8, 8, 8], cores=[2] * 4, kind=[0] * 4, kinds=("any",), edges=[(0, 1), (2, 3)]
    )
    workload = Workload.from_tasks(tasks, submit=[0, 40])
    workload = replace(workload, moldable=Moldable.of([2] * 4, 1, 4, [Linear()]))
    platform = Platform(RouterSpec("root", (ClusterSpec("a", 4, "any"), ClusterSpec("b", 3, "any"))))
    return compare(workload, ["easy", "moldable-greedy"], platform=platform)


def test_the_chart_of_tasks_knows_them_too() -> None:
    comparison = tasks_comparison()
    pack = gantt.pack(comparison.records, platform=comparison.platform)
    given = comparison.records["moldable-greedy"].given
    assert (given > 2).all()
    assert unpacked(pack["policies"][1]["cores"], pack["deflated"]).tolist() == given.tolist()
    assert comparison.by_weight() == []
    assert "on the requested cores (less on more cores)" in page.render(comparison)


# -- in a browser ------------------------------------------------------------------------------------------------------

_HOVER = """
const g = window.gridsimGantt, canvas = document.querySelector("canvas"), box = canvas.getBoundingClientRect();
for (let y = 8; y < canvas.clientHeight; y += 3)
  for (let x = 50; x < canvas.clientWidth; x += 3) {
    const [row, one] = g.jobAt(x, y);
    if (row < 0 || one.width[row] === g.data.width[row]) continue;
    const at = { clientX: box.left + x, clientY: box.top + y, bubbles: true, pointerId: 1 };
    canvas.dispatchEvent(new PointerEvent("pointermove", at));
    return [document.querySelector(".tip").innerText, one.width[row], g.data.width[row], g.data.job[row]];
  }
return null;
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("which", ["jobs", "tasks"])
def test_the_chart_shows_chosen_against_requested_cores(
    moldable: Comparison, which: str, width: int, browser: Any, tmp_path: Path
) -> None:
    comparison = moldable if which == "jobs" else tasks_comparison()
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.get(comparison.page(tmp_path / "report.html").as_uri())
    browser.execute_async_script(
        "const done = arguments[0]; (function wait() { window.gridsimGantt ? done() : setTimeout(wait, 20); })()"
    )
    assert browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    browser.execute_script(
        "const s = document.querySelector('[name=policy]'); s.value = s.options.length - 2;"
        "s.dispatchEvent(new Event('change')); const c = document.querySelector('[name=colour]'); c.value = 'given';"
        "c.dispatchEvent(new Event('change')); window.gridsimGantt.draw();"
    )
    names = browser.execute_script("return document.querySelector('.legend').innerText")
    assert "fewer cores" in names
    tip, got, asked, job = browser.execute_script(_HOVER)
    assert f"{got}, requested {asked}" in tip
    drawn = browser.execute_script(
        "const d = window.gridsimGantt.data, o = d.policies.at(-1), sum = new Map();"
        "for (let p = 0; p < o.count; p++) sum.set(o.row[p], (sum.get(o.row[p]) || 0) + o.size[p]);"
        "return [...sum].every(([row, cores]) => cores === o.width[row])"
    )
    assert drawn, "as many cores are drawn as each job got"
    browser.execute_script("window.gridsimGantt.find(arguments[0])", job)
    pinned = browser.find_element("css selector", ".pinned").text
    assert "cores" in pinned
    assert "ran" in pinned
    assert browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
