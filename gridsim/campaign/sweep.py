"""A sweep: one recipe with places for factors, and every combination of their values.

The recipe is that of `gridsim run` (`gridsim.scenario`) with a table ``[factors]``::

    [workload]
    file = "{log.file}"
    transforms = ["slice?jobs=5000&window={window}", "duplicate?load={load}"]

    [factors]
    policy = ["easy", "conservative"]
    load = [1.0, 1.2]
    window = [0, 1, 2]
    log = [{name = "CTC", file = "ctc.swf.gz"}, {name = "SDSC", file = "sdsc.swf.gz"}]

``{load}`` is replaced by the value, which keeps its type where nothing stands beside it. Each combination is a scenario
with a key of its own, made of all that its numbers depend on: the filled recipe and the checksums of the files that it
reads. So a sweep that gains values keeps its finished runs, and the same scenario has the same key in any sweep.
Policies vary fastest: every policy meets the same workload, and a worker reads it once.

A log, or another file of data, that is no longer what results were made from is refused: it is the ground that all of
them stand on. A policy in a plain Python file is what a researcher works at, so it may change: it then is another
policy, with keys of its own. What it made before stays in the store, under the old keys, and in no table; all its runs
are made anew, those that failed and those that did not.
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

from gridsim.campaign.comparisons import AS_IT_IS, REPLICAS, Alike, Comparing, Comparisons, compare_runs
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
from gridsim.campaign.store import RUNS, Store
from gridsim.errors import InputError, UnknownNameError, check_keys, located
from gridsim.files import checksum, parse_json, plain, read_toml, write_atomically
from gridsim.metrics.responsiveness import BOUND
from gridsim.model.workload import Workload
from gridsim.result import Result
from gridsim.scenario import Scenario
from gridsim.schema import NUMBER, check

_OWN = ("name", "factors", "exclude", "compare", "metrics", "records")
"""Keys beside those of a recipe of one scenario."""

_CUTS = {"bound": BOUND, "warmup": 0.0, "cooldown": 0.0}


class Combination(NamedTuple):
    """One scenario of a sweep, a *unit* of its campaign.

    Attributes
    ----------
    key : str
        Of all that its numbers depend on.
    factors : mapping
        Name and value of each; of a value that is a table, its name.
    recipe : mapping
        As `gridsim.scenario.Scenario.from_mapping` takes it.
    inputs : mapping of str to str
        Checksums of the files that it reads, by the names in the recipe.
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
    """Every combination of the factors of a recipe.

    Parameters
    ----------
    recipe : mapping
        With places for factors.
    factors : mapping of str to sequence
        Values of each: text, numbers, truth, or tables with a ``name``.
    exclude : sequence of mapping
        Combinations that are left out: those in which all of these factors have these values.
    compare : mapping
        How runs are compared in the end (`gridsim.campaign.comparisons.Comparing`).
    metrics : mapping
        ``bound``, ``warmup``, ``cooldown`` of the numbers, s.
    records : bool
        Keep the schedule of each run too, in ``records/KEY/``.
    path : Path
        Of the recipe: files are looked for beside it.
    inputs : mapping of str to str
        Checksums of all files that are read, by their names in the recipe.
    name : str
        For titles; that of the file where left out.
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
    def from_toml(cls, path: str | Path, *, alike: Alike | None = None) -> Sweep:
        """Sweep of a recipe file; every policy, workload and file that it names is looked at once.

        Parameters
        ----------
        path : path
            The recipe.
        alike : Alike, optional
            Other workloads that are made of those of the recipe.

        Raises
        ------
        InputError
            Naming the file, the key and what was expected.
        """
        path = Path(path).absolute()
        told = read_toml(path)
        sweep = cls.from_mapping(told if alike is None else alike.added(told, path), path=path)
        sweep.check()
        return replace(sweep, inputs=sweep._checksums())

    @classmethod
    def from_mapping(cls, told: Mapping[str, Any], *, path: Path, inputs: Mapping[str, str] | None = None) -> Sweep:
        """Sweep of a recipe as it is read from a file, or kept in a store."""
        for table in ("workload", "options", "metrics"):
            if not isinstance(told.get(table, {}), Mapping):
                found = type(told[table]).__name__
                raise InputError(f"is {found}; a table [{table}] was expected", path=path, field=table)
        recipe = _recipe_of(told)
        factors = told.get("factors", {})
        if not isinstance(factors, Mapping) or not factors:
            raise InputError("has no table of factors with a list of values each", path=path, field="factors")
        values = {name: values_of(name, given, path) for name, given in factors.items()}
        if (count := math.prod(map(len, values.values()))) > MOST_COMBINATIONS:
            message = f"have {count:,} combinations; at most {MOST_COMBINATIONS:,} were expected"
            raise InputError(message, path=path, field="factors")
        for name in used(recipe):
            if name not in values:
                raise UnknownNameError(f"factor in a place of {path.name},", name, values)
        recipe = with_places(recipe, values, path)
        exclude = told.get("exclude", [])
        check_exclude(exclude, values, path)
        metrics = told.get("metrics", {})
        for name, value in metrics.items():
            if name not in _CUTS:
                raise UnknownNameError(f"key of [metrics] in {path.name}", name, _CUTS)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise InputError(f"is {value!r}; seconds from 0 were expected", path=path, field=f"metrics.{name}")
        records = told.get("records", False)
        if not isinstance(records, bool):
            raise InputError(f"is {records!r}; true or false was expected", path=path, field="records")
        compare = told.get("compare", {})
        _comparing(compare, values, path)
        name = told.get("name", path.stem)
        if not isinstance(name, str):
            raise InputError(f"is {name!r}; a text was expected", path=path, field="name")
        return cls(recipe, values, exclude, compare, metrics, records, path, inputs or {}, name)

    @classmethod
    def from_store(cls, store: Store) -> Sweep:
        """Sweep of the results of a store; inputs need not be there any more.

        Raises
        ------
        InputError
            When the store holds no sweep.
        """
        told = store.identity()
        if "sweep" not in told:
            raise InputError("holds no results of a sweep", path=store.folder)
        inputs = {**told.get("inputs", {}), **told.get("plugins", {})}
        with located(store.note):
            return cls.from_mapping(told["sweep"], path=Path("campaign.toml"), inputs=inputs)

    @property
    def comparing(self) -> Comparing | None:
        """How runs are compared in the end; None where no factor is compared."""
        return _comparing(self.compare, self.factors, self.path)

    def identity(self, data: Path | None = None) -> Mapping[str, Any]:
        """What a store of its results says of them."""
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
        """Plain Python files that were others when the store was written to last."""
        there = store.identity().get("plugins", {})
        return [name for name, found in self.inputs.items() if there.get(name, found) != found]

    def belongs(self, store: Store) -> None:
        """Look whether results of the store are of this sweep, or of one that it grew out of.

        Raises
        ------
        InputError
            When they are of a sweep with another recipe that has no scenario in common with it.
        """
        there = store.identity().get("sweep")
        own = plain(self.identity()["sweep"])
        if there is None or there == own or not any((store.folder / RUNS).glob("*")):
            return
        if _recipe_of(there) == _recipe_of(own):
            return
        try:
            before = Sweep.from_mapping(there, path=store.note)
            recipes = {_numbers_come_of(one.recipe) for one in before.scenarios()}
        except InputError:
            recipes = set()
        if not any(_numbers_come_of(one.recipe) in recipes for one in self.scenarios()):
            raise InputError(
                f"holds results of another sweep, none of whose scenarios is in {self.path.name}; give another folder",
                path=store.folder,
            )

    @cached_property
    def _order(self) -> tuple[Sequence[str], Sequence[str]]:
        """Factors that workloads depend on, and those that policies alone do."""
        rest = set(used({name: value for name, value in self.recipe.items() if name != "policy"}))
        outer = [name for name in self.factors if name in rest]
        return outer, [name for name in self.factors if name not in rest]

    def groups(self) -> Iterator[list[Combination]]:
        """All scenarios, those of one workload together."""
        for group in self._filled():
            yield [self._scenario(chosen, recipe) for chosen, recipe in group]

    def _filled(self) -> Iterator[list[tuple[Mapping[str, Any], Mapping[str, Any]]]]:
        """Values of the factors, and the recipe filled with them, of all scenarios; those of one workload together."""
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
        """All scenarios, one after the other."""
        return itertools.chain.from_iterable(self.groups())

    def _left_out(self, chosen: Mapping[str, Any]) -> bool:
        return any(
            all(label_of(chosen[name]) == wanted for name, wanted in combination.items())
            for combination in self.exclude
        )

    def _scenario(self, chosen: Mapping[str, Any], recipe: Mapping[str, Any]) -> Combination:
        inputs = {name: self.inputs[name] for name in files_in(recipe) if name in self.inputs}
        told: dict[str, Any] = {"recipe": _without_engine(recipe), "inputs": inputs}
        told["metrics"] = {**_CUTS, **self.metrics}
        if self.records:
            told["records"] = True
        text = json.dumps(told, sort_keys=True, ensure_ascii=False)
        key = hashlib.sha256(text.encode()).hexdigest()[:16]
        return Combination(key, {name: label_of(chosen[name]) for name in self.factors}, recipe, inputs)

    def check(self) -> None:
        """Look at each policy and each workload once: what is wrong is told before anything runs.

        Raises
        ------
        InputError
            Naming the file, the key and what was expected. Also where no combination is left.
        """
        met: set[int] = set()
        for _, recipe in itertools.chain.from_iterable(self._filled()):
            parts = {name: hash((name, repr(value))) for name, value in recipe.items()}
            new = {name for name, part in parts.items() if part not in met}
            if new:  # a workload and a machine have a say in each other, a policy or options alone do not
                alone = new <= {"policy", "options"}
                told = {name: value for name, value in recipe.items() if name in new or not alone}
                Scenario.from_mapping(told, path=self.path)
                met.update(parts.values())
        if not met:
            raise InputError("leaves no combination of the factors", path=self.path, field="exclude")

    def _checksums(self) -> dict[str, str]:
        """Of every file that a scenario reads."""
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
            Also when a file has changed since the sweep began.
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
            "metrics": result.metrics(**{**_CUTS, **self.metrics}),
        }
        content = json.dumps(plain(told), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        beside = self._record(unit, result) if self.records else {}
        return Made(content.encode(), beside, jobs=len(result.record))

    def _record(self, unit: Combination, result: Result) -> dict[str, bytes]:
        """Files of the schedule, by their names in the store."""
        with tempfile.TemporaryDirectory() as folder:
            result.write(folder, table="csv", **{**_CUTS, **self.metrics})
            return {f"records/{unit.key}/{path.name}": path.read_bytes() for path in sorted(Path(folder).iterdir())}

    def rows(self, store: Store) -> Iterator[dict[str, Any]]:
        """Factors and numbers of each finished run; NaN for a number that is none."""
        for one in self._finished(store):
            yield {**one.factors, **_numbers(store, one)}

    def _finished(self, store: Store) -> Iterator[Combination]:
        return (one for one in self.scenarios() if store.has(one.file))

    def compared(self, store: Store) -> Comparisons | None:
        """What the finished runs say of the factor that is compared."""
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
        """Users and weeks of the log that users were drawn from; empty if none were."""
        for one in self._finished(store):
            redrawn = "resample" in str(one.recipe.get("workload", {}).get("transforms"))
            if redrawn and (found := json.loads(store.content(one.file)).get("resampled")):
                return dict(found)
        return {}

    def metrics_there(self, store: Store) -> list[str]:
        """Names of all numbers of finished runs, in order of appearance."""
        return list(dict.fromkeys(name for one in self._finished(store) for name in _numbers(store, one)))


def _resampled(workload: Workload) -> dict[str, Any]:
    """Users and weeks of the log that users were drawn from; nothing for other workloads."""
    for entry in workload.provenance.get("transforms", ()):
        if "users_of_log" in entry:
            return {"resampled": {name: entry[name] for name in ("users_of_log", "weeks")}}
    return {}


def _without_engine(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe without what a run goes on by, which no number depends on."""
    options = {name: value for name, value in recipe.get("options", {}).items() if name != "engine"}
    rest = {name: value for name, value in recipe.items() if name != "options"}
    return {**rest, "options": options} if options or recipe.get("options") == {} else rest


def _numbers_come_of(recipe: Mapping[str, Any]) -> str:
    """All of a recipe that a number depends on, to be compared with others."""
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
    """A table with a row a scenario: key, status (``finished``, ``failed``, ``missing``), factors, numbers."""
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
    """The workload that scenarios which differ in their policy share; a worker keeps the last one."""
    return Scenario.from_mapping(json.loads(recipe), path=path).load()


@lru_cache(maxsize=64)
def _checksum(place: Path, changed: int, size: int) -> str:
    """Of a file as it was when it was changed last."""
    return checksum(place)


def _comparing(compare: Any, factors: Mapping[str, Sequence[Any]], path: Path) -> Comparing | None:
    """What the table ``compare`` says; policies are compared where there are several and nothing else is said."""
    if not isinstance(compare, Mapping):
        raise InputError(f"is {compare!r}; a table [compare] was expected", path=path, field="compare")
    known = [entry.name for entry in fields(Comparing)]
    check_keys(compare, known, "[compare]", path.name)
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
    labels = [str(label_of(value)) for value in factors[comparing.factor]]
    if comparing.baseline is not None and str(comparing.baseline) not in labels:
        raise UnknownNameError(
            f"value of '{comparing.factor}', compare.baseline in {path.name},", str(comparing.baseline), labels
        )
    return comparing
