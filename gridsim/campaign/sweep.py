"""Sweep: a scenario file with placeholders for factors, and all combinations of their values.

The file is a scenario file of `gridsim run` (`gridsim.scenario`) with a table ``[factors]``::

    [workload]
    file = "{log.file}"
    transforms = ["slice?jobs=5000&window={window}", "duplicate?load={load}"]

    [factors]
    policy = ["easy", "conservative"]
    load = [1.0, 1.2]
    window = [0, 1, 2]
    log = [{name = "CTC", file = "ctc.swf.gz"}, {name = "SDSC", file = "sdsc.swf.gz"}]

``{load}`` is replaced by the value, which keeps its type if the placeholder is the whole text. Each combination is a
scenario with a unique key, computed from everything that affects its results: the filled scenario and the checksums of
its files. Therefore finished runs are kept when values are added to a sweep, and a scenario has the same key in all
sweeps. Policies vary fastest, so all policies use the same workload, and a worker reads it once.

A changed log or other data file raises an error, since all results depend on it. A policy in a plain Python file may
change during development; it is then a different policy with different keys. Its earlier results stay in the store
under the old keys and are not included in tables; all its runs are repeated, failed or not.
"""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from gridsim.campaign.comparisons import AS_IT_IS, REPLICAS, Comparing, Comparisons, Replications, compare_runs
from gridsim.campaign.factors import (
    MOST_COMBINATIONS,
    check_exclude,
    files_in,
    filled,
    label_of,
    used,
    values_of,
    with_places,
)
from gridsim.campaign.run import Made
from gridsim.campaign.store import RUNS, Shard, Store
from gridsim.errors import InputError, located, require_known
from gridsim.files import checksum, parse_json, plain, read_toml, write_atomically
from gridsim.metrics.responsiveness import CUTS
from gridsim.model.workload import Workload
from gridsim.result import Result
from gridsim.scenario import Scenario
from gridsim.schema import ANY, ANY_TABLE, NUMBER, Number, Table, check

_OWN = ("name", "factors", "exclude", "compare", "metrics", "records")
"""Keys in addition to those of a scenario file."""

_SWEEP = Table(
    {
        "workload?": ANY_TABLE,
        "options?": ANY_TABLE,
        "exclude?": [ANY_TABLE],
        "metrics?": Table({f"{name}?": Number(0) for name in CUTS}),
        "records?": bool,
        "compare?": Table(
            {f"{it.name}?": ANY for it in fields(Comparing)}
            | {"factor?": str, **{key: [str] for key in ("metrics?", "replicates?", "sources?")}}
        ),
        "name?": str,
        str: ANY,
    }
)


class Combination(NamedTuple):
    """Scenario of a sweep, a *unit* of its campaign.

    Attributes
    ----------
    key : str
        Key computed from everything that affects the results.
    factors : mapping
        Name and value of each factor; for a value that is a table, its name.
    recipe : mapping
        Scenario as for `gridsim.scenario.Scenario.from_mapping`.
    inputs : mapping of str to str
        Checksums of the files that it reads, by their names in the scenario.
    """

    key: str
    factors: Mapping[str, Any]
    recipe: Mapping[str, Any]
    inputs: Mapping[str, str]

    @property
    def file(self) -> str:
        """Name of its result."""
        return f"{self.key[:2]}/{self.key}.json"

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.factors.items())


@dataclass(frozen=True)
class Sweep:
    """All combinations of the factors of a scenario file.

    Parameters
    ----------
    recipe : mapping
        Scenario with placeholders for factors.
    factors : mapping of str to sequence
        Values of each factor: text, numbers, booleans, or tables with a ``name``.
    exclude : sequence of mapping
        Excluded combinations: those in which all of these factors have these values.
    compare : mapping
        Settings of the comparison of runs (`gridsim.campaign.comparisons.Comparing`).
    metrics : mapping
        ``bound``, ``warmup``, ``cooldown`` of the metrics, s.
    records : bool
        Whether to store the schedule of each run, in ``records/KEY/``.
    path : Path
        Path of the scenario file; other files are relative to it.
    inputs : mapping of str to str
        Checksums of all files that are read, by their names in the scenario.
    name : str
        Name for titles; by default that of the file.
    """

    recipe: Mapping[str, Any]
    factors: Mapping[str, Sequence[Any]]
    exclude: Sequence[Mapping[str, Any]] = ()
    compare: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    records: bool = False
    path: Path = Path("campaign.toml")
    inputs: Mapping[str, str] = field(default_factory=dict)
    name: str = "campaign"

    may_change: ClassVar[Sequence[str]] = ("sweep", "plugins")

    @classmethod
    def from_toml(cls, path: str | Path, *, replications: Replications | None = None) -> Sweep:
        """Return the sweep of a scenario file, after a check of all its policies, workloads and files.

        Parameters
        ----------
        path : path
            The file.
        replications : Replications, optional
            Replicas of the workloads of the file.

        Raises
        ------
        InputError
            With the file, the key and the expected value.
        """
        path = Path(path).absolute()
        told = read_toml(path)
        sweep = cls.from_mapping(told if replications is None else replications.added(told, path), path=path)
        sweep.check()
        return replace(sweep, inputs=sweep._checksums())

    @classmethod
    def from_mapping(cls, told: Mapping[str, Any], *, path: Path, inputs: Mapping[str, str] | None = None) -> Sweep:
        """Return the sweep for tables read from a file or stored in a store."""
        check(told, _SWEEP, path=path)
        recipe = _recipe_of(told)
        factors = told.get("factors", {})
        if not isinstance(factors, Mapping) or not factors:
            raise InputError("has no factors; expected a list of values for each", path=path, field="factors")
        values = {name: values_of(name, given, path) for name, given in factors.items()}
        if (count := math.prod(map(len, values.values()))) > MOST_COMBINATIONS:
            message = f"have {count:,} combinations; at most {MOST_COMBINATIONS:,} were expected"
            raise InputError(message, path=path, field="factors")
        require_known(f"factor in a place of {path.name},", values, *used(recipe))
        recipe = with_places(recipe, values, path)
        exclude = told.get("exclude", [])
        check_exclude(exclude, values, path)
        compare = told.get("compare", {})
        _comparing(compare, values, path)
        more = (told.get("metrics", {}), told.get("records", False), path, inputs or {}, told.get("name", path.stem))
        return cls(recipe, values, exclude, compare, *more)

    @classmethod
    def from_store(cls, store: Store) -> Sweep:
        """Return the sweep of the results of a store; the inputs need not exist.

        Raises
        ------
        InputError
            If the store has no sweep.
        """
        told = store.identity()
        if "sweep" not in told:
            raise InputError("holds no results of a sweep", path=store.folder)
        inputs = {**told.get("inputs", {}), **told.get("plugins", {})}
        with located(store.note):
            return cls.from_mapping(told["sweep"], path=Path("campaign.toml"), inputs=inputs)

    @property
    def comparing(self) -> Comparing | None:
        """Settings of the comparison of runs; None if no factor is compared."""
        return _comparing(self.compare, self.factors, self.path)

    def identity(self, data: Path | None = None) -> Mapping[str, Any]:
        """Return the identity of the results for a store."""
        told = {
            "name": self.name,
            **self.recipe,
            "factors": self.factors,
            "exclude": self.exclude,
            "compare": self.compare,
            "metrics": self.metrics,
            "records": self.records,
        }
        plugins = {name: found for name, found in self.inputs.items() if name.endswith(".py")}
        inputs = {name: found for name, found in self.inputs.items() if name not in plugins}
        return {"sweep": told, "inputs": inputs, **({"plugins": plugins} if plugins else {})}

    def changed_plugins(self, store: Store) -> list[str]:
        """Return the plain Python files that changed since the store was last written."""
        there = store.identity().get("plugins", {})
        return [name for name, found in self.inputs.items() if there.get(name, found) != found]

    def opened(self, out: str | Path | None = None, shard: str | None = None) -> tuple[Store, Shard]:
        """Return the store of the sweep, by default in a folder named after it, and the part of it to run."""
        store = Store(out or f"{self.name}-results")
        self.belongs(store)
        return store, Shard() if shard is None else Shard.of(shard)

    def belongs(self, store: Store) -> None:
        """Check whether the results of a store belong to this sweep, or to an earlier version of it.

        Raises
        ------
        InputError
            If they belong to a sweep of another scenario file, without common scenarios.
        """
        there = store.identity().get("sweep")
        own = plain(self.identity()["sweep"])
        if there is None or there == own or not any((store.folder / RUNS).glob("*")):
            return
        if _recipe_of(there) == _recipe_of(own):
            return
        try:
            before = Sweep.from_mapping(there, path=store.note)
            recipes = {_result_relevant(one.recipe) for one in before.scenarios()}
        except InputError:
            recipes = set()
        if not any(_result_relevant(one.recipe) in recipes for one in self.scenarios()):
            raise InputError(
                f"holds results of another sweep, none of whose scenarios is in {self.path.name}; give another folder",
                path=store.folder,
            )

    @cached_property
    def _order(self) -> tuple[Sequence[str], Sequence[str]]:
        """Factors that affect workloads, and those that affect only policies."""
        rest = set(used({name: value for name, value in self.recipe.items() if name != "policy"}))
        outer = [name for name in self.factors if name in rest]
        return outer, [name for name in self.factors if name not in rest]

    def groups(self) -> Iterator[list[Combination]]:
        """Yield all scenarios, grouped by workload."""
        for group in self._filled():
            yield [self._scenario(chosen, recipe) for chosen, recipe in group]

    def _filled(self) -> Iterator[list[tuple[Mapping[str, Any], Mapping[str, Any]]]]:
        """Yield the values of the factors and the filled scenario for all scenarios, grouped by workload."""
        outer, inner = self._order
        for first in itertools.product(*(self.factors[name] for name in outer)):
            group: list[tuple[Mapping[str, Any], Mapping[str, Any]]] = []
            for second in itertools.product(*(self.factors[name] for name in inner)):
                chosen = dict(zip((*outer, *inner), (*first, *second), strict=True))
                if not self._left_out(chosen):
                    with located(self.path):
                        group.append((chosen, filled(self.recipe, chosen)))
            if group:
                yield group

    def scenarios(self) -> Iterator[Combination]:
        """Yield all scenarios."""
        return itertools.chain.from_iterable(self.groups())

    def _left_out(self, chosen: Mapping[str, Any]) -> bool:
        return any(
            all(label_of(chosen[name]) == wanted for name, wanted in combination.items())
            for combination in self.exclude
        )

    def _scenario(self, chosen: Mapping[str, Any], recipe: Mapping[str, Any]) -> Combination:
        inputs = {name: self.inputs[name] for name in files_in(recipe) if name in self.inputs}
        told: dict[str, Any] = {"recipe": _without_engine(recipe), "inputs": inputs}
        told["metrics"] = {**CUTS, **self.metrics}
        if self.records:
            told["records"] = True
        text = json.dumps(told, sort_keys=True, ensure_ascii=False)
        key = hashlib.sha256(text.encode()).hexdigest()[:16]
        return Combination(key, {name: label_of(chosen[name]) for name in self.factors}, recipe, inputs)

    def check(self) -> None:
        """Check each policy and each workload once, so that errors are raised before anything runs.

        Raises
        ------
        InputError
            With the file, the key and the expected value; also if no combination is left.
        """
        met: set[int] = set()
        for _, recipe in itertools.chain.from_iterable(self._filled()):
            parts = {name: hash((name, repr(value))) for name, value in recipe.items()}
            new = {name for name, part in parts.items() if part not in met}
            if new:  # workload and machine affect each other; a policy or options alone do not
                alone = new <= {"policy", "options"}
                told = {name: value for name, value in recipe.items() if name in new or name == "site" or not alone}
                Scenario.from_mapping(told, path=self.path)
                met.update(parts.values())
        if not met:
            raise InputError("leaves no combination of the factors", path=self.path, field="exclude")

    def _checksums(self) -> dict[str, str]:
        """Return the checksums of all files that scenarios read."""
        found: dict[str, str] = {}
        for _, recipe in itertools.chain.from_iterable(self._filled()):
            for name in files_in(recipe):
                if name not in found:
                    try:
                        found[name] = checksum(self.path.parent / name)
                    except OSError as error:
                        raise InputError(f"cannot be read: {error.strerror}", path=self.path.parent / name) from error
        return found

    def made(self, unit: Combination, data: Path | None = None) -> Made:
        """Run one scenario.

        Raises
        ------
        InputError
            Also if a file has changed since the sweep began.
        """
        for name, expected in unit.inputs.items():
            place = self.path.parent / name
            stat = place.stat()
            if _checksum(place, stat.st_mtime_ns, stat.st_size) != expected:
                raise InputError("has changed since the sweep began", path=place)
        scenario = Scenario.from_mapping(unit.recipe, path=self.path)
        rest = {name: value for name, value in unit.recipe.items() if name != "policy"}
        workload = _workload(self.path, json.dumps(rest, sort_keys=True), tuple(unit.inputs.values()))
        result = scenario.run(workload)
        told = {
            "key": unit.key,
            "scenario": unit.recipe,
            "inputs": unit.inputs,
            **_resampled(result.workload),
            "metrics": result.metrics(**{**CUTS, **self.metrics}),
        }
        content = json.dumps(plain(told), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        attached = self._record(unit, result) if self.records else {}
        return Made(content.encode(), attached, jobs=len(result.record))

    def _record(self, unit: Combination, result: Result) -> dict[str, bytes]:
        """Return the files of the schedule, by their names in the store."""
        with tempfile.TemporaryDirectory() as folder:
            result.write(folder, table="csv", **{**CUTS, **self.metrics})
            return {f"records/{unit.key}/{path.name}": path.read_bytes() for path in sorted(Path(folder).iterdir())}

    def rows(self, store: Store) -> Iterator[dict[str, Any]]:
        """Yield factors and metrics of each finished run; NaN for undefined metrics."""
        for one in self._finished(store):
            yield {**one.factors, **_numbers(store, one)}

    def _finished(self, store: Store) -> Iterator[Combination]:
        return (one for one in self.scenarios() if store.has(one.file))

    def compared(self, store: Store) -> Comparisons | None:
        """Return the comparison of finished runs by the compared factor."""
        comparing = self.comparing
        if comparing is None:
            return None
        labels = {name: [label_of(value) for value in values] for name, values in self.factors.items()}
        drawn = [name for name in REPLICAS if name in comparing.replicates_of(labels)]
        rows = (row for row in self.rows(store) if all(row[name] != AS_IT_IS for name in drawn))
        labels |= {name: [value for value in labels[name] if value != AS_IT_IS] for name in drawn}
        with located(store.folder):
            return compare_runs(rows, labels, comparing)

    def resampled(self, store: Store) -> Mapping[str, int]:
        """Return the number of users and weeks of the log from which users were resampled; empty if none were."""
        for one in self._finished(store):
            redrawn = "resample" in str(one.recipe.get("workload", {}).get("transforms"))
            if redrawn and (found := json.loads(store.content(one.file)).get("resampled")):
                return dict(found)
        return {}

    def metrics_there(self, store: Store) -> list[str]:
        """Return the names of all metrics of finished runs, in order of appearance."""
        return list(dict.fromkeys(name for one in self._finished(store) for name in _numbers(store, one)))


def _resampled(workload: Workload) -> dict[str, Any]:
    """Return the number of users and weeks of the log from which users were resampled; empty for other workloads."""
    for entry in workload.provenance.get("transforms", ()):
        if "users_of_log" in entry:
            return {"resampled": {name: entry[name] for name in ("users_of_log", "weeks")}}
    return {}


def _without_engine(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario without the simulation engine, which does not affect results."""
    options = {name: value for name, value in recipe.get("options", {}).items() if name != "engine"}
    rest = {name: value for name, value in recipe.items() if name != "options"}
    return {**rest, "options": options} if options or recipe.get("options") == {} else rest


def _result_relevant(recipe: Mapping[str, Any]) -> str:
    """Return all parts of a scenario that affect results, for comparison with others."""
    return json.dumps(_without_engine(recipe), sort_keys=True)


def _recipe_of(told: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if name not in _OWN}


def _numbers(store: Store, unit: Combination) -> dict[str, float]:
    path, content = store.path(unit.file), store.content(unit.file)
    try:
        found = parse_json(content, path, "the result of a run")
        check(found, {"metrics": {str: (NUMBER, None)}}, path=path, data=content)
    except InputError as error:
        told = f"{error.message}; delete the file and sweep again"
        raise InputError(told, path=path, line=error.line, field=error.field) from error
    return {name: math.nan if value is None else float(value) for name, value in found["metrics"].items()}


def write_runs(sweep: Sweep, store: Store, path: str | Path) -> None:
    """Write a table, one row per scenario: key, status (``finished``, ``failed``, ``missing``), factors, metrics."""
    metrics = sweep.metrics_there(store)

    def write(temporary: Path) -> None:
        with temporary.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, ["key", "status", *sweep.factors, *metrics], lineterminator="\n")
            writer.writeheader()
            for one in sweep.scenarios():
                finished = store.has(one.file)
                status = "finished" if finished else "failed" if store.has_failed(one.file) else "missing"
                numbers = _numbers(store, one) if finished else {}
                told = {name: "" if math.isnan(value) else value for name, value in numbers.items()}
                writer.writerow({"key": one.key, "status": status, **one.factors, **told})

    write_atomically(path, write)


@lru_cache(maxsize=1)
def _workload(path: Path, recipe: str, checksums: tuple[str, ...]) -> Workload:
    """Return the common workload of scenarios that differ in their policy; a worker caches the last one."""
    return Scenario.from_mapping(json.loads(recipe), path=path).load()


@lru_cache(maxsize=64)
def _checksum(place: Path, changed: int, size: int) -> str:
    """Return the checksum of a file, cached by its modification time and size."""
    return checksum(place)


def _comparing(compare: Mapping[str, Any], factors: Mapping[str, Sequence[Any]], path: Path) -> Comparing | None:
    """Return the settings in the table ``compare``; by default policies are compared if there are several."""
    if not compare and len(factors.get("policy", ())) < 2:
        return None
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in compare.items()
    }
    try:
        comparing = Comparing(**values)
        comparing.sources_of(comparing.replicates_of(factors))
    except InputError as error:
        raise InputError(error.message, path=path, field=f"compare.{error.field or 'factor'}") from error
    if comparing.baseline is not None:
        labels = [str(label_of(value)) for value in factors[comparing.factor]]
        what = f"value of '{comparing.factor}', compare.baseline in {path.name},"
        require_known(what, labels, str(comparing.baseline))
    return comparing
