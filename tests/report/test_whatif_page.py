"""Pictures of the effects of a change: every answer is drawn at its value with its interval."""

from __future__ import annotations

from pathlib import Path

import pytest

from gridsim.policy.site_policy import machine
from gridsim.questions.changes import NOW, WhatIf, changes_of
from gridsim.questions.whatif import whatif
from gridsim.report.whatif_page import changes, figures, pictures, sizes
from gridsim.workload.synthetic.lublin import default_workload


@pytest.fixture(scope="module")
def found() -> WhatIf:
    log = default_workload(jobs=200, load=0.9, cores=64, seed=1)
    return whatif(log, changes_of(log, machine(log), cores=(-0.25, 0.5), loads=(1.2,)))


def test_waits_are_above_the_cores_that_they_are_of(found: WhatIf) -> None:
    axes = sizes(found).axes[0]
    assert axes.lines[0].get_xdata().tolist() == [48, 64, 96]
    assert axes.lines[0].get_ydata()[1] == found[NOW].numbers["wait_mean"]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["48", "64", "96"]


def test_every_change_has_a_row_and_its_interval(found: WhatIf) -> None:
    axes = changes(found).axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == [one.label for one in found.outcomes]
    drawn = [tuple(segment[:, 0]) for lines in axes.collections for segment in lines.get_segments()]
    waits = [one.wait for one in found.outcomes if one.wait is not None]
    assert drawn == [pytest.approx((it.ratio_low * it.baseline_mean, it.ratio_high * it.baseline_mean)) for it in waits]


def test_one_size_more_is_no_curve(found: WhatIf) -> None:
    log = default_workload(jobs=60, cores=64, seed=1)
    few = whatif(log, changes_of(log, machine(log), cores=(0.5,)))
    assert [one.drawing.name for one in pictures(few)] == ["whatif-changes"]
    assert [one.drawing.name for one in pictures(found)] == ["whatif-sizes", "whatif-changes"]


def test_the_figures_are_saved_for_a_paper(found: WhatIf, tmp_path: Path) -> None:
    assert [path.name for path in figures(found).save(tmp_path, "svg")] == ["whatif-sizes.svg", "whatif-changes.svg"]
