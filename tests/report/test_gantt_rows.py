"""Bands of a chart: a partition's jobs are in its band, and no two overlap on a row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gridsim.model.platform import Platform
from gridsim.model.workload import UNKNOWN
from gridsim.record import Record
from gridsim.report import gantt
from gridsim.report.gantt_rows import MOST_BANDS, by_partition

DATES = {"clock": {"origin": 1_795_244_026, "zone": "Europe/Berlin"}}


def grouped(record: Record, partition: object, names: tuple[str, ...] = ()) -> Record:
    """The record with these partitions."""
    labels = {**record.workload.labels, "partition": np.asarray(partition, dtype=np.int64)}
    told = {"partition": names} if names else {}
    return replace(record, workload=replace(record.workload, labels=labels, names=told, provenance=DATES))


def test_the_jobs_of_a_partition_lie_in_its_band_and_none_on_another(records: dict[str, Record]) -> None:
    partition = np.arange(4000) % 3 + 1
    made = {label: grouped(record, partition, ("", "batch", "gpu", "debug")) for label, record in records.items()}
    bands = by_partition(made)
    assert bands is not None
    assert bands.names == ("batch", "gpu", "debug")
    edges = np.concatenate([[0], np.cumsum(bands.cores)])
    for record in made.values():
        placed = gantt.placement(record, bands)
        band = np.repeat(bands.of, np.diff(placed.offset))
        assert (placed.low >= edges[band]).all()
        assert (placed.low + placed.size <= edges[band + 1]).all()
        assert np.array_equal(np.add.reduceat(placed.size, placed.offset[:-1]), record.given)
        now = np.median(record.start_us)
        running = np.flatnonzero((record.start_us <= now) & (now < record.end_us))
        held = np.concatenate([placed.cores(row) for row in running])
        assert len(held) == len(np.unique(held))


def test_a_band_is_as_high_as_its_jobs_ever_need() -> None:
    rows = [{"submit": t, "start": t, "end": t + 5, "cores": 3} for t in (0, 5, 6, 20)]
    bands = by_partition({"a": grouped(Record.from_rows(rows, cores=8), [1, 1, 2, 2])})
    assert bands is not None
    assert bands.cores == (3, 3)
    assert bands.names == ("partition 1", "partition 2")


def test_a_band_of_a_partition_that_was_simulated_apart_is_as_high_as_the_partition() -> None:
    rows = [{"submit": t, "start": t, "end": t + 5, "cores": 3} for t in (0, 5, 6, 20)]
    record = grouped(Record.from_rows(rows, cores=30), [1, 1, 2, 2], ("", "batch", "gpu"))
    apart = Platform.apart({"gpu": 10, "batch": 20}, "partition")
    bands = by_partition({"a": record}, apart)
    assert bands is not None
    assert (bands.names, bands.cores, bands.sized) == (("batch", "gpu"), (20, 10), True)
    pack = gantt.pack({"a": record}, platform=apart)
    assert [band["cores"] for band in pack["bands"]] == [20, 10]
    both = replace(record, workload=replace(record.workload, names={"partition": ("", "batch", "gpu,batch")}))
    of_both = by_partition({"a": both}, apart)
    assert of_both is not None
    assert (of_both.cores, of_both.sized) == ((20, 3), False)
    pooled = by_partition({"a": record}, Platform.single(30))
    assert pooled is not None
    assert (pooled.cores, pooled.sized) == ((3, 3), False)


def test_there_are_no_bands_where_there_is_but_one_partition() -> None:
    rows = [{"submit": 0, "start": 0, "end": 5, "cores": 1}] * 2
    record = Record.from_rows(rows, cores=8)
    assert by_partition({"a": record}) is None
    assert by_partition({"a": grouped(record, [1, 1])}) is None
    assert by_partition({"a": grouped(record, [1, UNKNOWN])}) is None


def test_small_partitions_share_a_band_where_there_are_many() -> None:
    rows = [{"submit": 0, "start": 0, "end": 5 if t else 50, "cores": 1} for t in range(30)]
    bands = by_partition({"a": grouped(Record.from_rows(rows, cores=30), np.arange(30))})
    assert bands is not None
    assert len(bands.names) == MOST_BANDS
    assert bands.names[0] == "partition 0"
    assert bands.names[-1] == "21 others"
    assert bands.cores[-1] == 21


def test_the_page_holds_bands_dates_and_what_jobs_are_coloured_by(records: dict[str, Record]) -> None:
    record = grouped(records["fcfs"], np.arange(4000) % 2 + 1, ("", "batch", "gpu"))
    labels = {**record.workload.labels, "account": np.arange(4000) % 9, "qos": np.zeros(4000, dtype=np.int64)}
    labels["group"] = labels["account"]
    pack = gantt.pack({"a": replace(record, workload=replace(record.workload, labels=labels))})
    assert [band["name"] for band in pack["bands"]] == ["batch", "gpu"]
    assert list(pack["colours"]) == ["account", "partition"]  # one QOS is none, and the group is the account again
    assert pack["dates"]["zone"] == "Europe/Berlin"
    assert next(ahead for _, ahead in pack["dates"]["ahead"]) == 3600
    assert "bands" not in gantt.pack(records)
    assert "dates" not in gantt.pack(records)
