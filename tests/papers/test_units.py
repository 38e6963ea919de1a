"""Units of runs, and the names of their files in stores."""

from __future__ import annotations

import pytest

from gridsim_papers.units import Unit


@pytest.mark.parametrize(
    ("unit", "file", "words"),
    [
        (Unit("chain", 3), "chain-03.csv", "chain window 3"),
        (Unit("industrial"), "industrial.csv", "industrial"),
        (Unit("ctc", 14, 0), "ctc-14-0.csv", "ctc window 14, 0"),
        (Unit("model", 0, "as-logged"), "model-00-as-logged.csv", "model window 0, as-logged"),
    ],
)
def test_a_unit_is_known_by_its_log_window_and_part(unit: Unit, file: str, words: str) -> None:
    assert (unit.file, str(unit)) == (file, words)


def test_rows_begin_with_what_the_unit_is() -> None:
    assert Unit("ctc", 3, "0.65").named("log", "window", "base") == {"log": "ctc", "window": 3, "base": "0.65"}
    assert Unit("ctc", 3).named("log", "window") == {"log": "ctc", "window": 3}
