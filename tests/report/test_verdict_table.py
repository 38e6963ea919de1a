"""Tables of verdicts."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

from gridsim.report.verdict_table import Entry, left_out, markdown, without_numbers, write
from gridsim.report.verdicts import Verdict

FOUND: list[Entry] = [
    (Verdict("A", "better", "holds", 0.81234, 0.7, 0.9, 1e-6, 10, "as claimed"), 0.0019, {"load": "0.65"}),
    (without_numbers("B", "exact", "not testable here", "no cases"), math.nan, {}),
]


def test_numbers_are_short_and_what_is_none_is_empty() -> None:
    lines = markdown(FOUND).splitlines()
    assert lines[2] == "| A | better | **holds** | 0.812 (0.7 to 0.9) | < 0.0001 | 0.0019 | 10 | as claimed |"
    assert lines[3] == "| B | exact | **not testable here** |  |  |  |  | no cases |"


def test_further_columns_come_after_the_claim() -> None:
    lines = markdown(FOUND, ["load"]).splitlines()
    assert lines[0].startswith("| id | claim | load | verdict |")
    assert lines[2].startswith("| A | better | 0.65 | **holds** |")
    assert lines[3].startswith("| B | exact |  | **not testable here** |")


def test_verdicts_are_stored_with_every_digit_as_json_or_csv(tmp_path: Path) -> None:
    write(tmp_path / "found.json", FOUND, ["load"])
    first, second = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert (first["effect"], first["p_wilcoxon"], first["load"]) == (0.81234, 0.0019, "0.65")
    assert (second["effect"], second["p_wilcoxon"], second["load"]) == (None, None, None)
    write(tmp_path / "found.csv", FOUND, ["load"])
    with (tmp_path / "found.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["verdict"] for row in rows] == ["holds", "not testable here"]
    assert [row["effect"] for row in rows] == ["0.81234", ""]


def test_claims_without_a_verdict_are_named(tmp_path: Path) -> None:
    ledger = tmp_path / "claims.csv"
    ledger.write_text("id\nA\nC\nB\n", encoding="utf-8")
    assert left_out(ledger, FOUND) == ["C"]
