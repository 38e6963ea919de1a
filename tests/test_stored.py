"""A file-backed record equals the original record."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gridsim.model.workload import Workload
from gridsim.record import Record
from gridsim.scenario import Scenario
from gridsim.stored import Columns, StoredRecord, StoredWorkload

pytestmark = [pytest.mark.long, pytest.mark.parquet]
COLUMNS = ("start_us", "end_us", "status", "cluster")
OF_JOBS = ("job", "submit", "runtime", "estimate", "cores", "deadline")


@pytest.fixture(scope="module")
def whole() -> Record:
    return Scenario(model="lublin?jobs=300&cores=64&load=0.9&estimates=multiples&users=5", policy="easy").run().record


@pytest.fixture
def stored(whole: Record, tmp_path: Path) -> StoredRecord:
    scenario = Scenario(model="lublin?jobs=300&cores=64&load=0.9&estimates=multiples&users=5", policy="easy")
    scenario.stream(tmp_path)
    table = Columns(tmp_path / "jobs.parquet")
    nothing = Workload.from_columns(submit=[], runtime=[], cores=[], provenance=whole.workload.provenance)
    return StoredRecord(table, StoredWorkload(table, nothing, ["user"]), whole.cores)


def check_same(found: Record, known: Record) -> None:
    for name in COLUMNS:
        assert getattr(found, name).tobytes() == getattr(known, name).tobytes(), name
    for name in OF_JOBS:
        assert getattr(found.workload, name).tobytes() == getattr(known.workload, name).tobytes(), name
    assert list(found.workload.labels) == list(known.workload.labels) == ["user"]
    assert found.workload.labels["user"].tolist() == known.workload.labels["user"].tolist()
    assert (len(found), len(found.workload)) == (len(known), len(known))


def test_columns_are_those_of_the_run(stored: StoredRecord, whole: Record) -> None:
    check_same(stored, whole)
    assert stored.workload.provenance == whole.workload.provenance
    assert stored.promises is None
    assert stored.as_given is stored


@pytest.mark.parametrize("rows", [slice(20, 60), np.arange(300) % 7 == 0, np.array([250, 3])])
def test_rows_of_it_are_held_for_themselves(stored: StoredRecord, whole: Record, rows: object) -> None:
    part = stored.select(rows)
    check_same(part, whole.select(rows))
    assert type(part) is Record
    assert all(getattr(part, name).base is None for name in COLUMNS)


def test_few_columns_are_held_however_many_tables_there_are(stored: StoredRecord, tmp_path: Path) -> None:
    other = StoredRecord(Columns(tmp_path / "jobs.parquet", stored.table.held), stored.workload, stored.cores)
    for record in (stored, other, stored):
        np.testing.assert_allclose(record.wait, record.response - record.held, atol=1e-6)
        assert len(stored.table.held) <= 3
    assert stored.start_us is stored.start_us
    with pytest.raises(KeyError):
        stored.workload.labels["group"]
