"""Comparison of existing result directories from their records, without simulation."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gridsim.errors import InputError
from gridsim.files import plain
from gridsim.metrics.responsiveness import CUTS
from gridsim.metrics.summary import ALL_METRICS
from gridsim.model.platform_file import platform_of_tree
from gridsim.model.time import to_us
from gridsim.model.workload import MACHINE_NAMES, Workload
from gridsim.options import Run
from gridsim.policy.presets import label_of
from gridsim.record import Status
from gridsim.result import Result
from gridsim.run_folder import read_numbers, read_run, read_run_table
from gridsim.stored import Columns, StoredRecord, StoredWorkload
from gridsim.tables import by_number, columns_in, read_names

_LABELS = ("user", "group", "account", "partition", "qos")
_SUPPORTED = frozenset(
    {*_LABELS, "job", "cores", "submit", "start", "end", "wait", "runtime", "estimate", "response", "slowdown"}
    | {"bounded_slowdown", "cluster", "status"}
)
"""Columns of rigid jobs on one pool of cores; with other columns the table alone is not sufficient."""


class Recorded(NamedTuple):
    """Runs of the same jobs.

    Attributes
    ----------
    results : mapping of str to Result
        Results by label; Parquet tables are not loaded into memory.
    options : Run
        Common options.
    metrics : mapping of str to mapping
        Metrics stored with the records, by label.
    versions : mapping
        Versions of the first run.
    """

    results: Mapping[str, Result]
    options: Run
    metrics: Mapping[str, Mapping[str, float]]
    versions: Mapping[str, str]


def recorded(places: Sequence[str], *, names: bool = True) -> Recorded:
    """Return the runs in result directories; for `gridsim compare` one per policy.

    Parameters
    ----------
    places : sequence of str
        Folders, each with an optional label (``today=out/easy``).
    names : bool
        Whether to read the names of users and accounts.

    Raises
    ------
    InputError
        If a folder is not a result directory, has jobs or machines for which the table is not sufficient, or other
        options.
    """
    stored: dict[str, Mapping[str, Any]] = {}
    folders = _labelled(places, stored)
    held: OrderedDict[Any, npt.NDArray[Any]] = OrderedDict()
    results: dict[str, Result] = {}
    for label, folder in folders.items():
        results[label] = _result(folder, stored[label], held, list(results.values()), named=names)
    first, *others = stored
    options = _options(stored[first], folders[first])
    for other in others:
        if replace(_options(stored[other], folders[other]), engine=options.engine) != options:
            raise InputError(f"has other options than {folders[first]}; expected runs that differ only in the policy",
                             path=folders[other] / "run.json", field="options")  # fmt: skip
    numbers = {label: found for label, folder in folders.items() if (found := _numbers(folder, stored[label]))}
    return Recorded(results, options, numbers, stored[first]["versions"])


def _labelled(places: Sequence[str], stored: dict[str, Mapping[str, Any]]) -> dict[str, Path]:
    """Return the folders of single runs by label; add their ``run.json`` to *stored*."""
    found: dict[str, Path] = {}
    for text in places:
        label, place = (None, text) if Path(text).is_dir() else label_of(text)
        folder = Path(place)
        run = read_run(folder)
        if "folders" in run:
            each = {name: folder / below for name, below in run["folders"].items()}
        else:
            each = {label or str(run.get("label") or folder.resolve().name): folder}
        for name, one in each.items():
            if name in found:
                raise InputError(f"'{name}' is the label of two runs; rename one of them: LABEL={one}", path=one)
            found[name], stored[name] = one, run if one is folder else read_run(one)
    return found


def _result(
    folder: Path,
    stored: Mapping[str, Any],
    held: OrderedDict[Any, npt.NDArray[Any]],
    earlier: Sequence[Result],
    *,
    named: bool,
) -> Result:
    """Return a run, with the jobs of an earlier one if they come from the same source."""
    if "folders" in stored:
        raise InputError("is a comparison of several policies; expected a single run", path=folder / "run.json")
    stated, provenance = stored["platform"], stored["workload"]
    platform = platform_of_tree(stated["tree"], path=folder / "run.json", origin=stated.get("origin", "given"))
    clusters = list(platform.clusters())
    if len(clusters) > 1 or clusters[0].capacity is not None:
        raise InputError("has a machine of nodes or several parts, for which the table of jobs is not sufficient; "
                         "use gridsim compare for its page", path=folder)  # fmt: skip
    nothing = Workload.from_columns(submit=[], runtime=[], cores=[], provenance=provenance)
    table, names = _table(folder, held)
    if beyond := [name for name in names if name not in _SUPPORTED]:
        raise InputError("is not supported by this command; use gridsim compare for its page", path=folder,
                         field=beyond[0])  # fmt: skip
    same = next((it.workload for it in earlier if plain(it.workload.provenance) == plain(provenance)), None)
    if same is None or len(same) != table.jobs:
        known = {label: each for label, each in read_names(folder).items() if named or label in MACHINE_NAMES}
        texts = {label: by_number(known[label]) for label in known}
        same = StoredWorkload(table, replace(nothing, names=texts), [name for name in names if name in _LABELS])
    return Result(StoredRecord(table, same, platform.cores), platform, stored["policy"], stored["options"])


def _table(folder: Path, held: OrderedDict[Any, npt.NDArray[Any]]) -> tuple[Columns, list[str]]:
    """Return the jobs, and the names of the columns."""
    path = folder / "jobs.parquet"
    if path.is_file():
        return Columns(path, held), columns_in(path)
    columns = read_run_table(folder)
    return _Text(folder / "jobs.csv", columns), list(columns)


class _Text(Columns):
    """Columns of a CSV table, all in memory."""

    def __init__(self, path: Path, columns: Mapping[str, npt.NDArray[Any]]) -> None:
        self.path, self.columns, self.jobs = path, columns, len(next(iter(columns.values())))

    def instants(self, name: str) -> npt.NDArray[np.int64]:
        found: npt.NDArray[np.int64] = to_us(self.columns[name])
        return found

    durations = instants

    def numbers(self, name: str) -> npt.NDArray[np.int64]:
        return self.columns[name]

    def status(self) -> npt.NDArray[np.int8]:
        known, place = np.unique(self.columns["status"], return_inverse=True)
        return np.array([Status[name] for name in known.tolist()], dtype=np.int8)[place]


def _options(stored: Mapping[str, Any], folder: Path) -> Run:
    names = {it.name for it in fields(Run)}
    if "failures" in stored["options"]:
        message = "was simulated with failures or windows, which cannot be repeated from it; give the log, its"
        raise InputError(f"{message} failures.csv with --failures, and the windows with --maintenance", path=folder)
    try:
        return Run(**{name: value for name, value in stored["options"].items() if name in names})
    except InputError as error:
        raise InputError(error.message, path=folder / "run.json", field=f"options.{error.field}") from error


def _numbers(folder: Path, stored: Mapping[str, Any]) -> dict[str, float]:
    """Return the metrics of the whole run, if they are stored with its record."""
    if stored.get("metrics") != CUTS:
        return {}
    if not (folder / "metrics.json").is_file():
        return {}
    return {name: value for name, value in read_numbers(folder).items() if name.partition("[")[0] in ALL_METRICS}
