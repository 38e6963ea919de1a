"""Registry of pluggable classes of gridsim, installed packages and plain files.

A *spec* is the text by which a user selects a class: ``name``, ``name?parameter=value&…``, or ``file.py:Class?…``. A
value may itself be a spec with its parameters in brackets: ``backfilling?ordering=wfp3&reserve=depth(k=4)``.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import importlib
import importlib.metadata
import importlib.util
import re
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from gridsim.errors import GridsimError, InputError, UnknownNameError, require_known

KINDS: dict[str, tuple[str, ...]] = {
    "ordering": (
        "gridsim.policy.ordering",
        "gridsim.policy.dag_ordering",
        "gridsim.policy.fair_share",
        "gridsim.policy.slurm.ordering",
    ),
    "heuristic": (
        "gridsim.policy.admission.msb:AscendingScheduledTime",
        "gridsim.policy.admission.mrt:EarliestDeadlineAndStart",
    ),
    "reservation": ("gridsim.policy.reservation",),
    "balancer": ("gridsim.policy.balancing",),
    "placement": ("gridsim.policy.placement",),
    "admission": (
        "gridsim.policy.admission.plan:Conservative",
        "gridsim.policy.admission.msb:MSB",
        "gridsim.policy.admission.mrt:MRT",
        "gridsim.policy.admission.qops",
        "gridsim.policy.admission.feedback",
        "gridsim.policy.admission.restart",
    ),
    "scheduler": (
        "gridsim.policy.scheduler.backfilling",
        "gridsim.policy.scheduler.plan_based",
        "gridsim.policy.scheduler.deadline_guarantee",
        "gridsim.policy.scheduler.moldable_scheduler",
        "gridsim.policy.scheduler.slurm",
    ),
    "predictor": ("gridsim.policy.prediction",),
    "corrector": ("gridsim.policy.prediction:Request,Steps,Added,Double",),
    "backfill_order": ("gridsim.policy.ordering:InQueue,Shortest",),
    "partition": ("gridsim.policy.partition",),
    "preemption": ("gridsim.policy.preemption",),
    "speedup": ("gridsim.model.speedup",),
    "reader": ("gridsim.workload.readers",),
    "metric": (),
    "future": (),
    "charge": ("gridsim.metrics.charges:CoreHours",),
    "model": (
        "gridsim.workload.synthetic.lublin",
        "gridsim.workload.synthetic.grid",
        "gridsim.workload.synthetic.packed",
    ),
    "transform": (
        "gridsim.workload.transform.slice",
        "gridsim.workload.transform.duplicate",
        "gridsim.workload.transform.estimates",
        "gridsim.workload.transform.rough_estimates",
        "gridsim.workload.transform.deadlines",
        "gridsim.workload.transform.load_factor",
        "gridsim.workload.transform.inflate",
        "gridsim.workload.transform.moldable",
        "gridsim.workload.transform.ranges",
        "gridsim.workload.transform.profiles",
        "gridsim.workload.transform.cirne",
        "gridsim.workload.transform.react",
        "gridsim.workload.transform.shake",
        "gridsim.workload.transform.resample",
        "gridsim.workload.transform.flurries",
        "gridsim.workload.transform.classes",
    ),
}
"""Kinds of pluggable classes, and the modules of gridsim that contain them: all public classes, or those after a colon.

Installed packages add modules through the entry-point group ``gridsim.<kind>``. gridsim's own metrics are not classes:
see `gridsim.metrics.summary`; nor is its own model of the future: see `gridsim.forecasts.model`.
"""


_INCLUDED = {"heuristic": "ordering", "backfill_order": "ordering"}
"""Kinds whose classes also belong to another kind."""


@dataclasses.dataclass(frozen=True, slots=True)
class Spec:
    """Parsed spec: a name (or ``file.py:Class``) and its parameters as written; ``str`` gives the input of `parse`."""

    name: str
    parameters: dict[str, Any]

    def __str__(self) -> str:
        return self.name + ("?" if self.parameters else "") + "&".join(map("=".join, self._written()))

    def _written(self) -> Iterator[tuple[str, str]]:
        for name, value in self.parameters.items():
            if isinstance(value, Spec):
                yield name, f"{value.name}({','.join(map('='.join, value._written()))})"
            elif not isinstance(value, Mapping):
                yield name, str(value)


_loaded: dict[str, dict[str, str]] = {}
"""Origin and checksum of each module outside gridsim, by module name."""


def kebab(name: str) -> str:
    """Return a class name in kebab case, as users write it: ``SmallestArea`` is ``smallest-area``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()


@cache
def _entries() -> Any:
    """Return the entry points of installed packages, cached because the search reads a file of each package."""
    return importlib.metadata.entry_points()


def _entries_of(kind: str) -> list[importlib.metadata.EntryPoint]:
    return sorted(_entries().select(group=f"gridsim.{kind}"), key=lambda entry: (entry.name, entry.value))


@cache
def _classes(kind: str) -> tuple[type, ...]:
    wider = _classes(_INCLUDED[kind]) if kind in _INCLUDED else ()
    installed = (thing for entry in _entries_of(kind) for thing in _public(_installed(entry)))
    return (*wider, *(thing for place in KINDS[kind] for thing in _included(place)), *installed)


def _included(place: str) -> Iterator[type]:
    """Return the classes of an entry of `KINDS`."""
    module, _, chosen = place.partition(":")
    found = importlib.import_module(module)
    return (getattr(found, name) for name in chosen.split(",")) if chosen else _public(found)


def forget() -> None:
    """Clear the cache of entry points, for example after an installation."""
    for found in (_entries, _classes, _table, _own):
        found.cache_clear()


def load_entry(entry: importlib.metadata.EntryPoint) -> tuple[Any, str]:
    """Object that an entry point names, and the entry point in words.

    Raises
    ------
    InputError
        If it cannot be imported.
    """
    owner = f"installed package '{entry.dist.name if entry.dist else '?'}', entry point '{entry.name}' of {entry.group}"
    try:
        return entry.load(), owner
    except Exception as error:
        raise InputError(f"{entry.value} cannot be imported: {type(error).__name__}: {error}", path=owner) from error


def _installed(entry: importlib.metadata.EntryPoint) -> ModuleType:
    """Import a module that an installed package registers."""
    module, owner = load_entry(entry)
    if not isinstance(module, ModuleType):
        raise InputError(f"'{entry.value}' is not a module; give the module that contains the classes", path=owner)
    package = {"package": f"{entry.dist.name} {entry.dist.version}"} if entry.dist else {}
    _remember(module, {**package, "module": module.__name__})
    return module


def _remember(module: ModuleType, origin: dict[str, str]) -> None:
    """Store the origin of a module, with the current checksum of its file."""
    file = getattr(module, "__file__", None)
    digest = {"sha256": hashlib.sha256(Path(file).read_bytes()).hexdigest()} if file else {}
    _loaded[module.__name__] = {**origin, **digest}


def plugins(*things: object) -> list[dict[str, str]]:
    """Return the plain files and installed packages that define these objects and their parts, without gridsim's own.

    Each entry has ``file``, or ``package`` and ``module``, and ``sha256``.
    """
    found: list[dict[str, str]] = []
    for thing in things:
        module = type(thing).__module__
        found += [_loaded[module]] if module in _loaded else []
        if dataclasses.is_dataclass(thing):
            found += plugins(*(getattr(thing, field.name, None) for field in dataclasses.fields(thing)))
    return [origin for place, origin in enumerate(found) if origin not in found[:place]]


def file_of(thing: type) -> str | None:
    """Return the plain file that defines a class, as the user named it; None for any other class.

    Other processes cannot import such a class from a module: `find` loads it from its file there.
    """
    return _loaded.get(thing.__module__, {}).get("file")


def _public(module: ModuleType) -> Iterator[type]:
    """Return the public classes of a module: those in ``__all__``, else those defined in it."""
    listed = getattr(module, "__all__", None)
    for name, value in vars(module).items():
        if not isinstance(value, type) or getattr(value, "_is_protocol", False):
            continue
        if (name in listed) if listed is not None else (value.__module__ == module.__name__ and name[0] != "_"):
            yield value


def name_of(thing: type) -> str:
    """Return the name of a class in specs: its own ``name`` attribute if any, else its class name in kebab case."""
    own = vars(thing).get("name")
    return own if isinstance(own, str) else kebab(thing.__name__)


@cache
def _table(kind: str) -> dict[str, type]:
    table: dict[str, type] = {}
    for thing in _classes(kind):
        for name in (name_of(thing), *getattr(thing, "aliases", ())):
            if table.setdefault(name, thing) is not thing:
                raise InputError(f"{kind} '{name}' is both {table[name].__module__} and {thing.__module__}")
    return table


@cache
def _own(kind: str, name: str) -> type | None:
    """Return a class of gridsim with as few imports as possible; None if this is inconclusive.

    If installed packages register classes of the kind, all are searched: a duplicate name is an error.
    """
    if kind in _INCLUDED or _entries_of(kind):
        return None
    for place in KINDS[kind]:
        for thing in _included(place):
            if name in (name_of(thing), *getattr(thing, "aliases", ())):
                return thing
    return None


def names(kind: str) -> dict[str, type]:
    """Return every class of a kind under its first name, in the order of their modules."""
    return {name_of(thing): thing for thing in dict.fromkeys(_table(kind).values())}


def spellings(kind: str) -> list[str]:
    """Return every name of a kind that `find` accepts, aliases included."""
    return list(_table(kind))


def is_registered(kind: str, name: str) -> bool:
    """Return whether *name* is a registered class of the kind."""
    return name in _table(kind)


def find(kind: str, name: str) -> type:
    """Return the class of a kind by name, alias, or ``file.py:Class``.

    Raises
    ------
    UnknownNameError
        With the nearest name and the list.
    InputError
        If the file is missing, cannot be imported, or the spec names no class of it.
    """
    if _names_file(name):
        path, _, attribute = name.rpartition(":") if not name.endswith(".py") else (name, "", "")
        return _from_file(Path(path), attribute)
    own = _own(kind, name)
    if own is not None:
        return own
    table = _table(kind)
    require_known(kind, table, name)
    return table[name]


def _module_of(path: Path) -> ModuleType:
    """Import a plain file as a module, once for each path, and again if the file has changed."""
    if not path.is_file():
        raise InputError("no such file; expected a Python file with the class", path=path)
    stat = path.stat()
    file = (path.resolve(), stat.st_mtime_ns, stat.st_size)
    if file not in _of_files:
        _of_files[file] = _imported(path)
        _remember(_of_files[file], {"file": str(path)})
    return _of_files[file]


_of_files: dict[tuple[Path, int, int], ModuleType] = {}


def _imported(path: Path) -> ModuleType:
    name = f"gridsim_plugin_{path.stem}"
    while name in sys.modules:  # another file with the same name
        name += "_"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and copies look their class up here
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[spec.name]
        line = error.lineno if isinstance(error, SyntaxError) else None
        raise InputError(f"cannot be imported: {type(error).__name__}: {error}", path=path, line=line) from error
    return module


def _from_file(path: Path, attribute: str) -> type:
    module = _module_of(path)
    thing = getattr(module, attribute, None)
    if not isinstance(thing, type):
        offered = [candidate.__name__ for candidate in _public(module)]
        if not attribute:
            raise InputError(f"has more than one class; expected {path}:{' or :'.join(offered) or 'Class'}", path=path)
        raise UnknownNameError(f"class of {path}", attribute, offered)
    return thing


def parse(text: str) -> Spec:
    """Split a spec into name and parameters.

    Examples
    --------
    >>> parse("backfilling?ordering=wfp3&reserve=depth(k=4)").parameters["reserve"]
    Spec(name='depth', parameters={'k': 4})
    >>> parse("site?SchedulerParameters+=bf_interval=10,defer").parameters
    {'SchedulerParameters+': 'bf_interval=10,defer'}
    """
    name, mark, rest = text.partition("?")
    if not mark and text.endswith(")") and not text.partition("(")[0].endswith(".py"):
        name, _, rest = text[:-1].partition("(")
    if not name:
        raise InputError(f"'{text}' has no name before the parameters")
    raw = name.strip() in RAW and bool(mark)
    parameters: dict[str, Any] = {}
    for part in split(rest, raw=raw):
        key, equals, value = map(str.strip, part.partition("="))
        if not equals or not key:
            raise InputError(f"'{part}' in '{text}' is not parameter=value")
        if key in parameters:
            raise InputError(f"'{text}' gives {key} twice; expected one value", field=key)
        parameters[key] = value if raw else _value(value)
    return Spec(name.strip(), parameters)


RAW = ("slurm", "site")
"""Policies whose parameters are only separated by ``&`` and have raw text as values."""


def split(text: str, *, raw: bool = False) -> list[str]:
    """Split the parameters of a spec at ``&`` or ``,`` outside brackets; raw ones at each ``&``."""
    if raw:
        return [part for part in text.split("&") if part.strip()]
    parts, depth, start = [], 0, 0
    for index, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if depth < 0:
            break
        if letter in "&," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    if depth:
        raise InputError(f"brackets do not match in '{text}'")
    return [part for part in [*parts, text[start:]] if part.strip()]


def _value(text: str) -> Any:
    lowered = text.lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):  # the latter two for text that is nested too deeply
        pass
    return parse(text) if text.endswith(")") and "(" in text else text


def located(text: str | Spec, folder: Path) -> str | Spec:
    """Return a spec with its file names relative to *folder*; unchanged if *folder* is None.

    This applies to plain files with classes, also of nested specs, and to parameters that name files.

    Examples
    --------
    >>> located("easy?ordering=sjf", Path("recipes"))
    'easy?ordering=sjf'
    >>> str(located("easy?ordering=mine.py:Mine(tie=2)", Path("recipes")))
    'easy?ordering=recipes/mine.py:Mine(tie=2)'
    """
    spec = parse(text) if isinstance(text, str) else text
    placed = _placed(spec, lambda name: str(folder / name))
    return text if placed == spec else placed


def files_named(text: str) -> list[str]:
    """Return the files in a spec: plain files with classes, and parameters that name files.

    Examples
    --------
    >>> files_named("easy?ordering=mine.py:Mine(tie=2)"), files_named("ranges?file=ranges.csv"), files_named("easy")
    (['mine.py'], ['ranges.csv'], [])
    >>> files_named("slurm?conf=etc/slurm.conf&assoc=assoc.cfg&boot=0")
    ['etc/slurm.conf', 'assoc.cfg']
    """
    found: list[str] = []

    def note(name: str) -> str:
        found.append(name.rpartition(":")[0] if name.rpartition(":")[0].endswith(".py") else name)
        return name

    _placed(parse(text), note)
    return found


_FILES = ("file", "conf", "assoc", "qos", "usage", "groups", "reservations")
"""Parameters that name files."""


def _placed(spec: Spec, place: Callable[[str], str]) -> Spec:
    """Return the spec with *place* applied to each file name."""
    name = place(spec.name) if _names_file(spec.name) else spec.name
    values = {}
    for key, value in spec.parameters.items():
        if isinstance(value, str) and kind_of(key) is not None and _names_file(value):
            value = Spec(value, {})
        if key in _FILES and isinstance(value, str) and value != "none":
            value = place(value)
        values[key] = _placed(value, place) if isinstance(value, Spec) else value
    return Spec(name, values)


def _names_file(name: str) -> bool:
    return name.rpartition(":")[0].endswith(".py") or name.endswith(".py")


def make(kind: str, what: Any) -> Any:
    """Return an object of a kind from a spec, a parsed spec, or an object, which is returned unchanged.

    Parameters
    ----------
    what : str, Spec or object
        The spec, or the object itself.

    Raises
    ------
    UnknownNameError
        For an unknown name or parameter.
    InputError
        For a value that the parameter does not accept.
    """
    if isinstance(what, str):
        what = parse(what)
    if not isinstance(what, Spec):
        return what
    thing = find(kind, what.name)
    known, given = parameters(thing), dict(what.parameters)
    others = getattr(thing, "other_keys", None)
    for name, value in what.parameters.items():
        check_current(thing, name)
        if others and (name not in known or (name == others and isinstance(value, str))):
            given[others] = {**given.get(others, {}), name: given.pop(name)}
        elif name not in known:
            raise UnknownNameError(f"parameter of {what.name}", name, known)
    values = {name: _typed(thing, name, value, what.name) for name, value in given.items()}
    try:
        return thing(**values)
    except GridsimError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(f"{what.name}: {error}") from error
    except Exception as error:  # the constructor of a plug-in may raise anything
        raise InputError(f"{what.name}: {type(error).__name__}: {error}") from error


def check_current(thing: type, parameter: str) -> None:
    """Raise `InputError` for a former name of a parameter; these are listed in ``renamed`` of the class."""
    now = getattr(thing, "renamed", {}).get(parameter)
    if now is not None:
        raise InputError(f"{name_of(thing)}: {parameter} was renamed; give {now}", field=parameter)


def parameters(thing: type) -> dict[str, Any]:
    """Return the parameters of a class with their defaults (`dataclasses.MISSING` if there is none)."""
    if not dataclasses.is_dataclass(thing):
        return {}
    return {
        field.name: field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
        for field in dataclasses.fields(thing)
        if field.init
    }


def _typed(thing: type, name: str, value: Any, owner: str) -> Any:
    """Convert a parameter to its annotated type: widen numbers, check literals, create objects of nested specs."""
    try:
        wanted = _hints(thing).get(name)
    except Exception:  # annotations of a plug-in may not resolve; its constructor then checks
        return value
    if type(None) in typing.get_args(wanted):
        if value is None or value == "none":
            return None
        others = [option for option in typing.get_args(wanted) if option is not type(None)]
        wanted = others[0] if len(others) == 1 else tuple(others)
    if isinstance(value, Spec | str | bool) and (kind := kind_of(name)) is not None:
        return make(kind, str(value).lower() if isinstance(value, bool) else value)  # a bool is no object
    if isinstance(value, str) and {int, float} & {wanted, *(wanted if isinstance(wanted, tuple) else ())}:
        value = number if type(number := _value(value)) in (int, float) else value
    if isinstance(value, int) and abs(value) > 2**53:
        raise InputError(f"{owner}: has an integer beyond 2**53", field=name)
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if typing.get_origin(wanted) is typing.Literal and value not in typing.get_args(wanted):
        raise UnknownNameError(f"value of {owner}?{name}", str(value), map(str, typing.get_args(wanted)))
    if wanted in (int, float, bool) and type(value) is not wanted:
        raise InputError(f"{owner}: {value!r} is not {wanted.__name__}", field=name)
    return value


@cache
def _hints(thing: type) -> dict[str, Any]:
    return typing.get_type_hints(thing)


_PARAMETER_KIND = {
    "reserve": "reservation",
    "others": "reservation",
    "order": "heuristic",
    "inner": "admission",
    "predict": "predictor",
    "correct": "corrector",
    "preempt": "preemption",
}
"""Parameters whose values are specs of a kind other than the parameter's name."""


def kind_of(parameter: str) -> str | None:
    """Return the kind of objects that a parameter of this name accepts, None for plain values."""
    kind = _PARAMETER_KIND.get(parameter, parameter)
    return kind if kind in KINDS else None


def describe(kind: str, *, own: bool = False) -> list[dict[str, Any]]:
    """Return a row for each class of a kind.

    A row has the name, aliases, parameters with defaults (None for required ones, which are also listed separately),
    the first line of the docstring, source, and origin (``gridsim``, an installed package, a plain file).

    Parameters
    ----------
    own : bool
        Exclude classes that also belong to another kind (every ordering is a heuristic).
    """
    elsewhere = names(_INCLUDED[kind]) if own and kind in _INCLUDED else {}
    return [_description(kind, name, thing) for name, thing in names(kind).items() if name not in elsewhere]


def describe_file(path: str | Path) -> list[dict[str, Any]]:
    """Return the same rows for the classes of a plain file, named as in ``--policy``."""
    module = _module_of(Path(path))
    return [_description("file", f"{path}:{thing.__name__}", thing) for thing in _public(module)]


def summary_of(thing: type) -> str:
    """Return the first line of a docstring, without the marks of parameters and code."""
    return re.sub(r"\*(\w+)\*|``", r"\1", (thing.__doc__ or "").strip().partition("\n")[0])


def _description(kind: str, name: str, thing: type) -> dict[str, Any]:
    return {
        "kind": kind,
        "name": name,
        "aliases": list(getattr(thing, "aliases", ())),
        "parameters": {
            key: None if value is dataclasses.MISSING else value for key, value in parameters(thing).items()
        },
        "required": [key for key, value in parameters(thing).items() if value is dataclasses.MISSING],
        "summary": summary_of(thing),
        "source": getattr(thing, "source", ""),
        "origin": _origin(thing),
    }


def _origin(thing: type) -> str:
    origin = _loaded.get(thing.__module__)
    return "gridsim" if origin is None else origin.get("file") or origin.get("package") or origin["module"]
