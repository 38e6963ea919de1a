"""Answers to what-if questions next to a comparison: the same runs in sentences, rows and files; names stay text."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import gridsim as gs
from gridsim.ask import compare
from gridsim.errors import InputError
from gridsim.model.platform import Platform
from gridsim.number_formatting import duration
from gridsim.policy.presets import policy
from gridsim.policy.protocols import Decision
from gridsim.questions.changes import NOW, changes_beside, changes_of
from gridsim.questions.whatif import whatif
from gridsim.report import page, whatif_text
from gridsim.report.comparison import Comparison
from gridsim.report.whatif_page import render
from gridsim.scenario import transformed
from gridsim.workload.synthetic.lublin import default_workload

Adding = Callable[..., Comparison]

HERE = Platform.single(64)
HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def log() -> gs.Workload:
    return default_workload(jobs=400, load=0.9, cores=64, seed=3, estimates="multiples")


@pytest.fixture(scope="module")
def asked(log: gs.Workload, with_changes: Adding) -> Comparison:
    compared = compare(log, ["fcfs", "easy"], platform=HERE)
    policies = {label: policy(label) for label in compared.labels}
    return with_changes(compared, policies, HERE)


def test_the_first_and_the_best_policy_are_changed_and_compared_with_their_runs(asked: Comparison) -> None:
    assert [found.policy for found in asked.whatifs] == ["fcfs", "easy"]
    for found in asked.whatifs:
        assert found[NOW].numbers["wait_mean"] == asked.metrics[found.policy]["wait_mean"]
        assert [one.cores for one in found.outcomes] == [64, 70, 77, 64, 64]


def test_the_answer_with_a_comparison_is_that_of_the_command(log: gs.Workload, asked: Comparison) -> None:
    alone = whatif(log, changes_of(log, HERE, cores=[0.1, 0.2], loads=[1.2], estimates=[2.0]), platform=HERE)
    for mine, theirs in zip(asked.whatifs[-1].outcomes, alone.outcomes, strict=True):
        assert mine.label == theirs.label
        assert mine.numbers == pytest.approx(dict(theirs.numbers), nan_ok=True)


def test_cuts_hold_for_requested_metrics_too(log: gs.Workload, with_changes: Adding) -> None:
    compared = compare(log, ["easy"], platform=HERE, warmup=86_400)
    found = with_changes(compared, {"easy": policy("easy")}, HERE).whatifs[0]
    assert found[NOW].numbers["wait_mean"] == compared.metrics["easy"]["wait_mean"]
    wait = found.outcomes[1].wait
    assert wait is not None
    assert wait.jobs < len(log)


def test_a_fifth_of_few_cores_is_evaluated_once() -> None:
    jobs = gs.Workload.from_columns(submit=[0, 1], runtime=[9, 9], cores=[1, 1])
    assert [each.platform.cores for each in changes_beside(jobs, Platform.single(5))] == [6, 5, 5]
    assert [each.platform.cores for each in changes_beside(jobs, Platform.single(2))] == [2, 2]


def test_the_words_name_what_helps_most_and_what_another_policy_does(asked: Comparison) -> None:
    told = " ".join(whatif_text.lead(asked.whatifs))
    assert "Under easy, none of these changes significantly shortens the mean wait" in told
    assert "The change from fcfs to easy shortens waits more than 77 cores (+20 %) under fcfs" in told
    assert "Users submit less after longer waits" in told


def test_the_most_effective_change_is_named_where_it_is_clear(log: gs.Workload) -> None:
    found = whatif(log, changes_of(log, HERE, cores=[0.5, 1.0]), platform=HERE)
    told = whatif_text.lead([found])[0]
    assert told.startswith(
        "Of these changes, 128 cores (+100 %) would shorten waits most under easy: the mean falls from"
    )


def test_every_row_states_whether_its_difference_is_real(asked: Comparison) -> None:
    now, *changed = whatif_text.lines(asked.whatifs[-1])
    assert (now.change, now.against, now.real) == (NOW, "-", "-")
    for line in changed:
        assert line.real in ("yes, shorter", "yes, longer", "not significant", "too little data", "no change")
    fcfs = whatif_text.lines(asked.whatifs[0])[-1]
    assert (fcfs.against, fcfs.real) == ("the same", "no change")  # FCFS uses no estimates


def test_the_file_has_a_row_a_policy_and_change(asked: Comparison, tmp_path: Path) -> None:
    assert whatif_text.FILE in asked.write(tmp_path)
    rows = list(csv.DictReader(io.StringIO((tmp_path / whatif_text.FILE).read_text())))
    assert len(rows) == 10
    assert rows[0]["wait_difference"] == ""
    assert float(rows[1]["ratio_low"]) <= float(rows[1]["ratio"]) <= float(rows[1]["ratio_high"])


@pytest.mark.long
def test_a_page_has_the_table_and_links_to_its_numbers(asked: Comparison, tmp_path: Path) -> None:
    asked.write(tmp_path)
    text = asked.page(tmp_path / "report.html").read_text()
    assert '<h2 id="what-if">What if</h2>' in text
    assert '<a class="numbers" href="#data-whatif.csv">whatif.csv</a>' in text
    assert text.count('<tr class="group">') == 2


@dataclass
class OfOneSize:
    """A policy that does not support another machine."""

    cores: int = 64

    def setup(self, cluster: Any, rng: Any) -> None:
        if cluster.cores != self.cores:
            raise InputError(f"has {cluster.cores} cores; the nodes have {self.cores}", field="cluster")
        self._inner = policy("fcfs")
        self._inner.setup(cluster, rng)

    def dispatch(self, now: int) -> Decision:
        decision: Decision = self._inner.dispatch(now)
        return decision

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._inner, name)


def test_a_change_that_a_policy_refuses_is_reported_and_the_others_are_simulated(
    log: gs.Workload, with_changes: Adding
) -> None:
    compared = compare(log, {"site": OfOneSize()}, platform=HERE)
    found = with_changes(compared, {"site": OfOneSize()}, HERE).whatifs
    assert [one.label for one in found[0].outcomes] == [NOW, "load times 1.2", "estimates 2 times better"]
    assert [label for label, _ in found[0].refused] == ["70 cores (+9.4 %)", "77 cores (+20 %)"]
    assert any("cannot be simulated" in line for line in whatif_text.lead(found))
    with pytest.raises(InputError, match="the nodes have 64"):
        whatif(log, changes_of(log, HERE, cores=[0.5]), policy=OfOneSize(), platform=HERE)


def test_other_jobs_taken_in_are_reported(log: gs.Workload, with_changes: Adding) -> None:
    dated = transformed(log, ["deadlines?stringency=0.5"], cores=64)
    policies = {label: policy(label) for label in ("easy", "qops")}
    found = with_changes(compare(dated, policies, platform=HERE), policies, HERE).whatifs
    assert len({one.numbers["unadmitted"] for one in found[-1].outcomes}) > 1
    told = whatif_text.lead(found)
    assert any(line.startswith("Different changes run different jobs") for line in told)
    assert not any(line.startswith("The change from") for line in told)  # waits of different jobs


def test_jobs_that_a_smaller_machine_has_no_capacity_for_are_reported_and_it_is_not_what_helps_most(
    log: gs.Workload,
) -> None:
    found = whatif(log, changes_of(log, HERE, cores=[-0.5], loads=[], estimates=[]), platform=HERE)
    now, smaller = found.outcomes
    lost = int(smaller.numbers["rejected"])
    assert now.numbers["rejected"] == 0
    assert lost == sum(cores > 32 for cores in log.cores)
    wait = smaller.wait
    assert wait is not None
    told = whatif_text.sentences(found)
    assert told[1].startswith(
        f"With 32 cores (-50 %), {lost} jobs would not run at all; the {len(log) - lost} jobs that run in both cases "
        f"would wait {duration(wait.policy_mean)} instead of {duration(wait.baseline_mean)}: "
    )
    assert wait.ratio == wait.policy_mean / wait.baseline_mean, "all numbers of the sentence are of the same jobs"
    assert wait.baseline_mean != now.numbers["wait_mean"]
    assert (
        f"Jobs: 400; 400 ran as it is and {400 - lost} with 32 cores (-50 %), {400 - lost} of them in every run."
        in told
    )
    better = replace(found, outcomes=(now, smaller._replace(wait=replace(smaller.wait, verdict="better"))))
    assert whatif_text.lead([better])[0].startswith("Under easy, none of these changes significantly shortens")


@pytest.mark.long
def test_names_are_text_on_both_pages(log: gs.Workload, with_changes: Adding) -> None:
    found = whatif(log, changes_of(log, HERE, cores=[0.5]), platform=HERE, label=HOSTILE)
    alone = render(found, title=HOSTILE, command=HOSTILE)
    compared = compare(log, {HOSTILE: "easy"}, platform=HERE)
    attached = page.render(with_changes(compared, {HOSTILE: policy("easy")}, HERE))
    for text in (alone, attached):
        assert "<img" not in text
        assert "&lt;/script&gt;" in text
    assert alone.count("</script>") == 0
    assert attached.count("</script>") == 2
