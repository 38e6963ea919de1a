"""Scenario: all inputs of one run, as a TOML scenario file or a Python object."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gridsim import registry
from gridsim.errors import InputError, UnknownNameError, located, name_of
from gridsim.files import read_toml
from gridsim.metrics.summary import requested_measures
from gridsim.model.failures import failures_from
from gridsim.model.platform import Platform, check_cores
from gridsim.model.platform_file import TABLES, platform_of, read_platform
from gridsim.model.random_streams import of_replica, stream
from gridsim.model.windows import windows_from
from gridsim.model.workload import Workload, with_plugins
from gridsim.policy.capabilities import capabilities_of
from gridsim.policy.pools import in_pools
from gridsim.policy.presets import label_of, of_site, site_machine, site_of
from gridsim.policy.presets import policy as make_policy
from gridsim.policy.site_policy import machine, machine_of
from gridsim.registry import Spec
from gridsim.result import Result
from gridsim.run_setup import in_site_zone
from gridsim.schema import ANY, ANY_TABLE, WHOLE, Table, check, typed
from gridsim.simulation import Run, run, simulate
from gridsim.streaming import Streamed
from gridsim.streaming import stream as stream_jobs
from gridsim.workers import Awaited, Workers, crew
from gridsim.workload.blocks import Blocks
from gridsim.workload.formats.parquet_jobs import ParquetJobs
from gridsim.workload.formats.table import mapping_of
from gridsim.workload.problems import Problems
from gridsim.workload.read import Paths, read_workload
from gridsim.workload.synthetic.lublin import Lublin, LublinBlocks, default_workload

if TYPE_CHECKING:
    import numpy as np


FIXED = "fixed"
"""Value of ``users`` for fixed submit times, as in the log."""

REACT = "react"
"""Name of the transform that finds the jobs and ends that users wait for."""


@dataclass(frozen=True)
class Scenario:
    """All inputs of one run.

    Parameters
    ----------
    file : str, sequence of str or None
        Log to read, or several files of sacct or PBS that form one log; relative to the scenario file.
    model : str, Spec or None
        Workload model with its parameters (``lublin?jobs=5000&load=0.7``) instead of a log; if neither is given, the
        built-in workload of ``gridsim compare``.
    cores : int or None
        Size of the machine; by default the size that the source states.
    rules : mapping
        Rules for kinds of damaged or impossible lines (``{"zero-runtime": "repair"}``).
    transforms : sequence of str or Spec
        Transforms, applied in this order (``slice?first=0&jobs=5000``).
    policy : str or Spec
        Policy, as in ``--policy``; plain files are relative to the scenario file.
    options : Run
        Options of the run.
    platform : Platform or None
        The machine as a tree of clusters, instead of *cores*.
    timezone : str or None
        Time zone of a log with local times only, such as ``Europe/Berlin``.
    users : str, Spec or None
        Model of users who react to waiting times (``react?think=1200``), applied before the transforms. None or
        ``fixed``: submit times are those of the workload.
    cluster : str, sequence of str or None
        Clusters to read from a log of several (``all``: all of them, kept separate).
    label : str or None
        Label of the policy in results; in a scenario file it precedes the policy (``today=slurm?conf=slurm.conf``).
    format : str, Spec or None
        Reader of the log: its name, or ``file.py:Class``; by default detected from the file.
    metrics, charges : sequence of str, Spec or object
        Additional metrics and charges: by name, or user-defined (`gridsim.metrics.measures`).
    mapping : str or None
        For a table: a TOML file or a preset that maps columns to properties of jobs.
    memory : {"requested", "used"} or None
        For a log in SWF: the field that is used as the memory request of jobs.
    site : str, mapping, Spec or None
        The site of the policy ``site`` (`gridsim.policy.presets.site_of`), and the machine if neither *platform* nor
        *cores* is given.

    Examples
    --------
    >>> Scenario(model="lublin?jobs=50", policy="fcfs").run().metrics()["completed"]
    50.0
    """

    file: str | Sequence[str] | None = None
    model: str | Spec | None = None
    cores: int | None = None
    rules: Mapping[str, str] = field(default_factory=dict)
    transforms: Sequence[str | Spec] = ()
    policy: str | Spec = "easy"
    options: Run = field(default_factory=Run)
    platform: Platform | None = None
    timezone: str | None = None
    users: str | Spec | None = None
    cluster: str | Sequence[str] | None = None
    label: str | None = None
    format: str | Spec | None = None
    metrics: Sequence[Any] = ()
    charges: Sequence[Any] = ()
    mapping: str | None = None
    memory: str | None = None
    site: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "policy", of_site(self.policy, self.site))
        if self.site is not None and self.platform is None and self.cores is None:
            object.__setattr__(self, "platform", site_machine(self.site))

    @classmethod
    def from_toml(cls, path: str | Path, *, site: Any = None) -> Scenario:
        """Return the scenario in a scenario file.

        Parameters
        ----------
        path : path
            The file.
        site : str or mapping, optional
            The site, instead of that in the file.

        Returns
        -------
        Scenario
            The scenario.

        Raises
        ------
        InputError
            With the file, the key and the expected value.
        """
        path = Path(path)
        return cls.from_mapping(read_toml(path), path=path, site=site)

    @classmethod
    def from_mapping(cls, recipe: Mapping[str, Any], *, path: Path | None = None, site: Any = None) -> Scenario:
        """Return the scenario in a mapping with tables ``workload`` and ``options`` and key ``policy``.

        The machine may be defined as in a platform file (`gridsim.model.platform_file`), or by ``platform.file``.

        Parameters
        ----------
        recipe : mapping
            The tables and keys.
        path : path, optional
            The scenario file: plain files are relative to it, and errors contain its name.
        site : str or mapping, optional
            The site, instead of that in the mapping.

        Returns
        -------
        Scenario
            The scenario.
        """
        check(recipe, _RECIPE, path=path)
        workload = recipe.get("workload", {})
        if "file" in workload and "model" in workload:
            raise InputError("give a file or a model, not both", path=path, field="workload.model")
        platform = _platform(recipe, path)
        if platform is not None and "cores" in workload:
            raise InputError("[platform] gives the machine too; leave out one", path=path, field="workload.cores")
        with located(path, field="workload.cores"):
            check_cores(workload.get("cores"))
        with located(path, field="workload.on"):
            Problems(workload.get("on"))
        site = _site(recipe, path) if site is None else site
        label, policy = _policy(recipe.get("policy", "easy"), path, site)
        if "preemption" in recipe:
            policy = _preempting(policy, recipe["preemption"], path, site)
        return cls(
            file=_relative_to(workload.get("file"), path),
            model=_part(workload, "model", path, lambda it: registry.make("model", it)),
            rules=workload.get("on", {}),
            transforms=_parts(workload.get("transforms", []), "workload.transforms", path, _transform),
            policy=policy,
            site=site,
            options=_options(recipe, path),
            platform=platform,
            users=_part(workload, "users", path, lambda it: [_transform(each) for each in with_users(it, ())]),
            label=label,
            format=_part(workload, "format", path, lambda it: registry.make("reader", it)),
            metrics=_parts(recipe.get("metric", []), "metric", path, lambda it: requested_measures([it])),
            charges=_parts(recipe.get("charge", []), "charge", path, lambda it: requested_measures((), [it])),
            mapping=_mapping(workload.get("mapping"), path),
            **{key: workload[key] for key in ("cores", "timezone", "cluster", "memory") if key in workload},
        )

    def load(self) -> Workload:
        """Return the transformed workload; reference policies of transforms are simulated.

        Returns
        -------
        Workload
            The jobs.
        """
        seed = self.options.seed
        if self.file is not None:
            policies = [make_policy(self.policy)]
            platform = self.platform or (machine_of(policies) if self.cores is None else None)
            widest = self.cores if platform is None else platform.widest
            how: dict[str, Any] = {"format": self.format, "timezone": self.timezone, "cluster": self.cluster}
            how |= {"mapping": self.mapping, "memory": self.memory}
            workload = jobs_of(self.file, policies, cores=widest, rules=self.rules, **how)
        elif self.model is None:
            workload = default_workload(seed=seed, cores=self._cores)
        else:
            model = self._model(self.model)
            workload = with_plugins(model.generate(seed), model)
        transforms = with_users(self.users, self.transforms)
        return transformed(workload, transforms, platform=self.platform, cores=self.cores, options=self.options)

    def blocks(self) -> Blocks:
        """Return the workload in blocks, from a Parquet file or a model that draws its jobs one by one.

        Returns
        -------
        Blocks
            The jobs.

        Raises
        ------
        InputError
            If a part of the scenario needs all jobs at once.
        """
        for name in ("transforms", "users", "timezone", "cluster", "mapping", "format", "memory", "on"):
            if value := self.rules if name == "on" else getattr(self, name):
                message = f"is {value!r}, which needs the whole workload; leave it out, or --stream"
                raise InputError(message, field=f"workload.{name}")
        if self.model is not None:
            model = self._model(self.model)
            if not isinstance(model, Lublin):
                raise InputError(
                    f"is {self.model}; only lublin can be generated block by block", field="workload.model"
                )
            return LublinBlocks(model, self.options.seed)
        file = self.file[0] if isinstance(self.file, list | tuple) and len(self.file) == 1 else self.file
        if not isinstance(file, str) or not file.endswith(".parquet"):
            expected = "one .parquet file, or model = 'lublin?estimates=multiples&…'"
            raise InputError(f"is {self.file or 'not given'}; --stream needs {expected}", field="workload.file")
        return ParquetJobs(file)

    def stream(
        self, folder: str | Path, blocks: Blocks | None = None, *, progress: Callable[[int], None] | None = None
    ) -> Streamed:
        """Simulate the scenario block by block into a result directory (`gridsim.streaming.stream`).

        Parameters
        ----------
        folder : path
            The result directory.
        blocks : Blocks, optional
            Result of `blocks`, if already loaded.
        progress : callable, optional
            Called from time to time with the number of jobs released so far.

        Returns
        -------
        Streamed
            Its metrics, and whether it was simulated or already existed.
        """
        blocks = blocks or self.blocks()
        stated: dict[str, Any] = {"cores_stated": blocks.cores_stated, "provenance": blocks.provenance}
        platform = self.platform or machine(
            Workload.from_columns(submit=[], runtime=[], cores=[], **stated), self.cores
        )
        how: dict[str, Any] = {"platform": platform, "policy": self.policy, "options": self.options}
        if self.options.failures is not None:
            raise InputError(
                "failures, windows and checkpoints need the whole run; leave them out, or --stream", field="failures"
            )
        measures = requested_measures(self.metrics, self.charges)
        return stream_jobs(blocks, folder, **how, label=self.label, measures=measures, progress=progress)

    @property
    def _cores(self) -> int | None:
        return self.cores if self.platform is None else self.platform.cores

    def _model(self, model: str | Spec) -> Any:
        spec = registry.parse(model) if isinstance(model, str) else model
        if self._cores is not None:
            spec = Spec(spec.name, {"cores": self._cores, **spec.parameters})
        return registry.make("model", spec)

    def run(self, workload: Workload | None = None, *, progress: Callable[[int], None] | None = None) -> Result:
        """Simulate the scenario.

        Parameters
        ----------
        workload : Workload, optional
            Result of `load`, if already loaded.
        progress : callable, optional
            Called from time to time with the number of jobs released so far.

        Returns
        -------
        Result
            Result of the run.
        """
        if workload is None:
            workload = self.load()
        platform = self.platform or machine(workload, self.cores, [make_policy(self.policy)])
        result = simulate(workload, platform=platform, policy=self.policy, options=self.options, progress=progress)
        return replace(result, label=self.label).with_measures(requested_measures(self.metrics, self.charges))


def _relative_to(file: Any, path: Path | None) -> Any:
    """Return the path of a log (or several), relative to the scenario file."""
    if isinstance(file, list):
        return [_relative_to(name, path) for name in file]
    return file if file is None or path is None else str(path.parent / file)


def _folder(path: Path | None) -> Path:
    return Path() if path is None else path.parent


def _site(recipe: Mapping[str, Any], path: Path | None) -> str | Spec | None:
    """Return the site of a scenario file, as text or as a table, relative to the file."""
    given = recipe.get("site")
    if given is None:
        return None
    with located(path, field="site"):
        return registry.located(site_of(given), _folder(path))


def _policy(text: str, path: Path | None, site: Any) -> tuple[str | None, str | Spec]:
    """Return label and policy of a scenario file; the policy is created once, so that errors are raised here."""
    with located(path, field="policy"):
        label, spec = label_of(text)
        policy = registry.located(spec, _folder(path))
        make_policy(policy, site)
    return label, policy


def _preempting(policy: str | Spec, table: Mapping[str, Any], path: Path | None, site: Any) -> str | Spec:
    """Return a policy with the preemption of a scenario file, unless it has its own."""
    with located(path, field="preemption"):
        if "mode" not in table:
            raise InputError("has no mode; expected requeue, checkpoint, cancel or suspend")
        how = Spec(table["mode"], {name: value for name, value in table.items() if name != "mode"})
        registry.make("preemption", how)
        made = make_policy(policy, site)
        if "preempt" not in registry.parameters(type(made)):
            raise InputError(f"is not supported by {name_of(made)}; expected for example easy or conservative")
        if made.preempt is not None:
            return policy
        spec = registry.parse(policy) if isinstance(policy, str) else policy
        found = Spec(spec.name, {**spec.parameters, "preempt": how})
        make_policy(found, site)
    return found


def _part(workload: Mapping[str, Any], key: str, path: Path | None, make: Callable[[Any], object]) -> Any:
    """Return a part of a scenario's workload, relative to the file; it is created once, to raise errors here."""
    if key not in workload:
        return None
    with located(path, field=f"workload.{key}"):
        found = registry.located(workload[key], _folder(path))
        make(found)
    return found


def _mapping(text: str | None, path: Path | None) -> str | None:
    """Return the mapping of columns of a table, a file or text; it is read once, so that errors are raised here."""
    if text is None:
        return None
    found = str(_folder(path) / text) if text.endswith(".toml") else text
    with located(path, field="workload.mapping"):
        mapping_of(found)
    return found


def _options(recipe: Mapping[str, Any], path: Path | None) -> Run:
    options = recipe.get("options", {})
    if {"failures", "windows", "checkpoint"} & set(recipe):
        table, origin = recipe.get("failures", {}), path or "the recipe"
        with located(path):
            windows, saving = windows_from(recipe.get("windows", []), origin), recipe.get("checkpoint", {})
            options = {**options, "failures": failures_from(table, _folder(path), origin, windows, saving)}
    with located(path, below="options"):
        if isinstance(options.get("balancer"), str):
            options = {**options, "balancer": registry.located(options["balancer"], _folder(path))}
        return Run(**options)


def _parts(
    specs: Sequence[str], key: str, path: Path | None, make: Callable[[str | Spec], object]
) -> tuple[str | Spec, ...]:
    """Return the parts in a list of a scenario file; each is created once, so that errors are raised here."""
    found: list[str | Spec] = []
    for number, spec in enumerate(specs):
        with located(path, field=f"{key}[{number}]"):
            found.append(registry.located(spec, _folder(path)))
            make(found[-1])
    return tuple(found)


def _platform(recipe: Mapping[str, Any], path: Path | None) -> Platform | None:
    """Return the platform of a scenario: its tables, or the referenced file; None if it has neither."""
    named = [name for name in TABLES if name in recipe]
    if not named:
        return None
    table = recipe.get("platform", {})
    if not isinstance(table, Mapping) or "file" not in table:
        return platform_of(recipe, path=path, origin="the recipe")
    typed(table["file"], str, "platform.file", path)
    others = [key for key in table if key != "file"] + [name for name in named if name != "platform"]
    if others:
        raise InputError(f"gives the platform; leave out either it or {others[0]}", path=path, field="platform.file")
    return read_platform(_folder(path) / table["file"])


_WORKLOAD = Table(
    {
        **dict.fromkeys((f"{name}?" for name in ("model", "timezone", "users", "format", "mapping", "memory")), str),
        "cluster?": str,
        "file?": (str, [str]),
        "cores?": WHOLE,
        "on?": Table({str: str}),
        "transforms?": [str],
    }
)
_RECIPE = Table(
    {
        "workload?": _WORKLOAD,
        "options?": Table({f"{option.name}?": ANY for option in fields(Run) if option.name != "failures"}),
        "policy?": str,
        "site?": (str, ANY_TABLE),
        "metric?": [str],
        "charge?": [str],
        **dict.fromkeys(("failures?", "checkpoint?"), ANY_TABLE),
        "preemption?": Table({"mode?": str, str: ANY}),
        **dict.fromkeys(("windows?", *(f"{table}?" for table in TABLES)), ANY),
    }
)


def with_users(users: str | Spec | None, transforms: Sequence[str | Spec]) -> list[str | Spec]:
    """Return the transforms, preceded by the model of user reactions unless *users* is ``fixed``.

    Raises
    ------
    UnknownNameError
        For *users* other than ``fixed``, ``react`` and transforms of plain files.

    Examples
    --------
    >>> with_users("react", ["expand?load=1.5"]), with_users("fixed", ["expand?load=1.5"])
    (['react', 'expand?load=1.5'], ['expand?load=1.5'])
    """
    if users is None:
        return list(transforms)
    spec = registry.parse(users) if isinstance(users, str) else users
    if spec.name == FIXED and not spec.parameters:
        return list(transforms)
    if spec.name == FIXED:
        raise UnknownNameError(f"parameter of {FIXED}", next(iter(spec.parameters)), ())
    if spec.name != REACT and ".py" not in spec.name:
        raise UnknownNameError("kind of users", spec.name, (FIXED, REACT))
    return [users, *transforms]


def transformed(
    workload: Workload,
    transforms: Sequence[Any],
    *,
    platform: Platform | None = None,
    cores: int | None = None,
    options: Run | None = None,
) -> Workload:
    """Apply transforms to a workload, one after the other.

    A transform with a ``reference`` (the text of a policy) also receives the record of that policy. It is simulated on
    the output of the preceding transforms, with the machine and options of the scenario.

    Parameters
    ----------
    transforms : sequence of str, Spec or object
        Such as ``slice?jobs=5000``, ``duplicate?load=1.6``, ``deadlines?stringency=0.2&reference=easy``.
    platform : Platform, optional
        Machine of the reference policies; by default one cluster of *cores*, or of the size that the workload states.
    options : Run, optional
        Options of the reference policies; the seed is also used for the transforms. Each kind of transform has its own
        random stream, so its draws do not change when a transform of another kind is added.

    Raises
    ------
    InputError
        For an unknown name, before anything runs, and if a transform raises it.

    Examples
    --------
    >>> log = Workload.from_columns(submit=[0, 2], runtime=[20, 10], cores=[4, 4], cores_stated=4)
    >>> transformed(log, ["deadlines?stringency=0.2"]).deadline // 1_000_000
    array([20, 25])
    """
    options = options or Run()
    met: Counter[str] = Counter()
    made = [_transform(transform) for transform in transforms]
    if made and "jobs_before_transforms" not in workload.provenance:
        workload = workload.with_provenance(jobs_before_transforms=len(workload))
    for asked, reference in made:
        transform = _sized(asked, workload, platform, cores)
        name = registry.name_of(type(transform))
        rng = _rng(options.seed, transform, name, met[name])
        met[name] += 1
        if reference is None:
            changed = transform.apply(workload, rng)
        else:
            whole = in_pools(workload, platform or machine(workload, cores), [reference], options.partitions)
            record = run(workload, whole, reference, options)
            changed = transform.apply(workload, rng, record)
        workload = with_plugins(_with_entry(changed, workload, transform), transform, reference)
    return workload


def _rng(seed: int, transform: Any, name: str, met: int) -> np.random.Generator:
    """Return the random stream of a transform: that of its kind, or of its replica if it makes one of several."""
    replica = getattr(transform, "replica", None)
    return of_replica(seed, name, replica) if replica else stream(seed, "transform", name, met)


def _sized(transform: Any, workload: Workload, platform: Platform | None, cores: int | None) -> Any:
    """Set the parameter ``cores`` of a transform to the size of the machine if it was not given.

    With ``machine = "widest"`` the size is that of the widest cluster, the largest that one job may use. A parameter
    ``capacity`` is set to the machine's capacity of the transform's ``resource``.

    Raises
    ------
    InputError
        If a job may have more cores than the machine.
    """
    if platform is not None and "capacity" in registry.parameters(type(transform)) and transform.capacity is None:
        return replace(transform, capacity=_total(platform, transform.resource))
    unknown = platform is None and cores is None and workload.cores_stated is None
    if unknown or "cores" not in registry.parameters(type(transform)):
        return transform
    whole = platform or machine(workload, cores)
    widest = getattr(transform, "machine", None) == "widest"
    size = whole.widest if widest else whole.cores
    if transform.cores is None:
        return replace(transform, cores=size)
    if widest and transform.cores > size:
        raise InputError(f"is {transform.cores}; expected at most the {size} of the machine", field="cores")
    return transform


def _total(platform: Platform, resource: str) -> int:
    """Return the total of a resource over all clusters."""
    machines = [(cluster.capacity, cluster.cores) for cluster in platform.clusters()]
    return sum(
        cores * (resource == "cores") if capacity is None else capacity.total(resource) for capacity, cores in machines
    )


def _with_entry(changed: Workload, workload: Workload, transform: Any) -> Workload:
    """Add an entry for the transform to the changed workload if it, a plain file, did not add one."""
    entries = list(workload.provenance.get("transforms", ()))
    if len(changed.provenance.get("transforms", ())) > len(entries):
        return changed
    told = repr(transform) if is_dataclass(transform) else registry.name_of(type(transform))
    return changed.with_provenance(transforms=[*entries, {"transform": told}])


def _transform(what: str | Spec) -> tuple[Any, Any]:
    """Return a transform and its reference policy, if any."""
    transform = registry.make("transform", what)
    reference = getattr(transform, "reference", None)
    return transform, None if reference is None else make_policy(reference)


def rules_for(policies: Iterable[Any]) -> dict[str, str]:
    """Return the rules for reading a log that differ from the defaults for these policies.

    Jobs that were cancelled while waiting are kept for a policy that models cancellations (``withdraws``), because
    they were in the queue, possibly ahead of others. Other policies still exclude them.
    """
    return {"never-ran": "keep"} if any(capabilities_of(policy).withdraws for policy in policies) else {}


def jobs_of(
    log: Workload | Paths, policies: Iterable[Any] = (), *, rules: Mapping[str, str] | None = None, **how: Any
) -> Workload:
    """Return the jobs of a workload, or of a log that is read as the policies require; *how* as for `read_workload`."""
    if isinstance(log, Workload):
        return log
    policies = list(policies)
    return in_site_zone(read_workload(log, rules={**rules_for(policies), **(rules or {})}, **how), policies)


def simulate_all(
    workload: Workload,
    policies: Mapping[str, Any],
    *,
    platform: Platform,
    options: Run | None = None,
    progress: Callable[[str, int], None] | None = None,
    workers: int | Workers = 1,
) -> dict[str, Result]:
    """Return the results of several policies on the same workload, by label.

    Parameters
    ----------
    policies : mapping of str to str or object
        Policies by label.
    progress : callable, optional
        Called with the label and the number of jobs released so far.
    workers : int or Workers
        Number of worker processes; 1 uses only this process. Results do not depend on the number.
    """
    with crew(workers, share=[workload]) as team:
        answers = under_way(workload, policies, team, platform=platform, options=options, progress=progress)
        return {label: answer.result() for label, answer in answers.items()}


def under_way(
    workload: Workload,
    policies: Mapping[str, Any],
    workers: Workers,
    *,
    platform: Platform,
    options: Run | None = None,
    progress: Callable[[str, int], None] | None = None,
) -> dict[str, Awaited[Result]]:
    """Return pending results as for `simulate_all`, for callers that use one result before the others are complete."""
    schedulers = {label: make_policy(policy) for label, policy in policies.items()}  # checks names before any run
    platform = in_pools(workload, platform, schedulers.values(), None if options is None else options.partitions)

    def begun(label: str) -> Awaited[Result]:
        told = None if progress is None else functools.partial(progress, label)
        how: dict[str, Any] = {"platform": platform, "policy": schedulers[label], "options": options}
        return workers.submit(simulate, workload, **how, name=label, progress=told)

    answers = {label: begun(label) for label, _ in sorted(schedulers.items(), key=_effort, reverse=True)}
    return {label: answers[label] for label in schedulers}


def _effort(labelled: tuple[str, Any]) -> float:
    """Return the relative run time of a policy; the slowest starts first, to shorten the total time."""
    return capabilities_of(labelled[1]).effort
