"""Workloads in blocks, from a Parquet file and from a model."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridsim.errors import InputError
from gridsim.model.workload import Workload
from gridsim.tables import write_table
from gridsim.workload.blocks import joined, split_between_instants
from gridsim.workload.formats.parquet_jobs import ParquetJobs
from gridsim.workload.synthetic.lublin import Lublin, LublinBlocks

JOBS: dict[str, Any] = {
    "job": np.array([3, 5, 4]),
    "submit": np.array([0.5, 2.0, 2.0]),
    "runtime": np.array([1.0, 2.5, 3.0]),
    "cores": np.array([1, 2, 3]),
    "user": np.array([7.0, np.nan, 8.0]),
    "status": np.array(["completed", "", "x"]),
}


@pytest.mark.parametrize(
    "model",
    [
        Lublin(jobs=1000, load=0.8, cores=256, estimates="multiples", users=7),
        Lublin(jobs=700, kind="interactive", estimate_step=60.0, start_bucket=9),
        Lublin(jobs=5, f=0.0),
    ],
)
@pytest.mark.parametrize("block", [1, 97, 5000])
def test_a_model_in_blocks_makes_the_same_jobs(model: Lublin, block: int) -> None:
    if block == 1 and model.jobs > 100:
        model = Lublin(jobs=60, users=3, estimates="multiples")
    whole, blocks = model.generate(seed=3), LublinBlocks(model, 3, block=block)
    found = functools.reduce(joined, blocks)
    for (name, column), (other, known) in zip(found.columns(), whole.columns(), strict=True):
        assert name == other
        assert column.tobytes() == known.tobytes(), name
    assert (blocks.jobs, blocks.cores_stated) == (len(whole), whole.cores_stated)
    assert {**whole.provenance, "realised_load": None} == {**blocks.provenance, "realised_load": None}


@pytest.mark.parametrize(
    ("model", "field"),
    [
        (Lublin(), "estimates"),
        (Lublin(estimates="multiples", realised=True), "realised"),
        (Lublin(estimates="multiples", kind="two-class"), "kind"),
    ],
)
def test_a_model_that_has_to_see_all_jobs_says_so(model: Lublin, field: str) -> None:
    with pytest.raises(InputError, match="needs all jobs at once") as told:
        LublinBlocks(model)
    assert told.value.field == field


@pytest.mark.parquet
@pytest.mark.parametrize("block", [1, 2, 10])
def test_a_parquet_file_in_blocks_has_the_jobs_of_its_rows(tmp_path: Path, block: int) -> None:
    write_table(tmp_path / "it's.parquet", JOBS)
    source = ParquetJobs(tmp_path / "it's.parquet", block=block)
    found = functools.reduce(joined, source)
    assert found.job.tolist() == [3, 5, 4]
    assert found.submit.tolist() == [500_000, 2_000_000, 2_000_000]
    assert found.runtime.tolist() == found.estimate.tolist() == [1_000_000, 2_500_000, 3_000_000]
    assert found.labels["user"].tolist() == [7, -1, 8]
    assert list(found.labels) == ["user"]
    assert source.jobs == source.provenance["jobs_kept"] == 3
    assert len(list(source)) == -(-3 // block)


@pytest.mark.parquet
@pytest.mark.parametrize(
    ("changed", "field", "line", "told"),
    [
        ({"submit": np.array([0.0, 9.0, 4.0])}, "submit", 3, "is 4 s, and 9 s in the row above"),
        ({"cores": np.array([1.0, 2.5, 1.0])}, "cores", 2, "is 2.5; expected a whole number"),
        ({"runtime": np.array([1.0, np.nan, 1.0])}, "runtime", 2, "is empty; expected a number"),
        ({"runtime": np.array(["a", "b", "c"])}, "runtime", None, "is of type VARCHAR; expected numbers"),
        (
            {"runtime": np.array([1.0, 0.0, 1.0])},
            "runtime",
            None,
            "has 0.0; expected a finite run time above 0 s",
        ),
        (
            {"runtime": None},
            "runtime",
            None,
            "is not a column of the file; expected the columns submit, runtime, cores",
        ),
    ],
)
def test_an_invalid_job_is_named(
    tmp_path: Path, changed: dict[str, Any], field: str, line: int | None, told: str
) -> None:
    path = tmp_path / "jobs.parquet"
    write_table(path, {name: column for name, column in {**JOBS, **changed}.items() if column is not None})
    with pytest.raises(InputError, match=told) as error:
        list(split_between_instants(ParquetJobs(path, block=2)))
    assert (str(error.value.path), error.value.field, error.value.line) == (str(path), field, line)


@pytest.mark.parquet
def test_a_file_that_is_none_and_one_without_jobs_are_refused(tmp_path: Path) -> None:
    (tmp_path / "some.parquet").write_text("job;submit\n")
    with pytest.raises(InputError, match="expected a Parquet file"):
        ParquetJobs(tmp_path / "some.parquet")
    write_table(tmp_path / "none.parquet", {name: column[:0] for name, column in JOBS.items()})
    with pytest.raises(InputError, match="contains no jobs"):
        ParquetJobs(tmp_path / "none.parquet")


def test_joined_blocks_are_one_workload() -> None:
    whole = Workload.from_columns(submit=[0, 1, 2], runtime=[1, 2, 3], cores=1, logged={"wait": [1.0, 2.0, 3.0]})
    again = joined(whole.select(slice(0, 1)), whole.select(slice(1, 3)))
    for (name, column), (_, known) in zip(again.columns(), whole.columns(), strict=True):
        assert column.tolist() == known.tolist(), name
