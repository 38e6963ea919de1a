"""The benchmark of schedules detects a different schedule, including one that differs only in the nodes of a job."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "schedules.py"


def compared(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), *words], capture_output=True, text=True, check=False)


@pytest.mark.long
def test_a_change_of_a_schedule_is_reported(tmp_path: Path) -> None:
    before = tmp_path / "before.csv"
    first = compared("--only", "generated:gpus moldable", "--out", str(before))
    assert first.returncode == 0, first.stderr
    assert compared("--only", "generated:gpus moldable", "--against", str(before)).returncode == 0
    lines = before.read_text().splitlines()
    assert len(lines) > 1
    lines[0] = f"{lines[0][:-64]}{'0' * 64}"
    before.write_text("\n".join(lines) + "\n")
    again = compared("--only", "generated:gpus moldable", "--against", str(before))
    assert again.returncode == 1
    assert again.stdout.splitlines()[-1] == f"{len(lines)} schedules, 1 different"


@pytest.mark.long
def test_checksums_of_nodes_depend_on_the_allocations(tmp_path: Path) -> None:
    """One job on an empty machine runs at the same time under each placement rule, on other nodes."""
    code = (
        "import schedules, gridsim as gs\n"
        "workload, platform = schedules.generated('memory', 40, 1)\n"
        "first = workload.select(slice(0, 1))\n"
        "for rule in ('first', 'spread'):\n"
        "    record = gs.simulate(first, platform=platform, policy=f'easy?placement={rule}').record\n"
        "    print(schedules.checksum(record), schedules.checksum(record, allocations=True))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=SCRIPT.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    one, other = (line.split() for line in done.stdout.splitlines())
    assert one[0] == other[0]
    assert one[1] != other[1]


@pytest.mark.long
def test_names_of_schedules_are_unique() -> None:
    code = (
        "import schedules\n"
        "names = [schedules._named(case) for case in schedules.cases(['a.swf'], 'site')]\n"
        "print(len(names) - len(set(names)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=SCRIPT.parent, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "0", done.stderr
