"""Objects by name: specs, files, installed packages."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from gridsim import registry
from gridsim.errors import InputError, UnknownNameError
from gridsim.model.workload import Workload
from gridsim.policy.ordering import Fifo, ShortestEstimate, Wfp3
from gridsim.policy.presets import policy
from gridsim.policy.reservation import FirstFit
from gridsim.registry import Spec, parse
from gridsim.simulation import simulate

WIDEST = '''"""Widest request first."""
from dataclasses import dataclass

__all__ = ["WidestFirst"]


@dataclass
class WidestFirst:
    """Largest core request first; *tie* > 0 prefers longer estimates among equals (cores per second)."""

    tie: float = 0.0

    def rank(self, queue, now):
        return -(queue.cores + self.tie * queue.estimate)
'''
JOBS = Workload.from_columns(submit=[0, 1, 2], runtime=[10, 5, 5], cores=[4, 2, 4], cores_stated=4)


# -- specs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("easy", Spec("easy", {})),
        ("easy?", Spec("easy", {})),
        ("a?b=1", Spec("a", {"b": 1})),
        ("a?b=1&c=2.5", Spec("a", {"b": 1, "c": 2.5})),
        ("a?b=1,c=2", Spec("a", {"b": 1, "c": 2})),
        ("a(b=1, c=x)", Spec("a", {"b": 1, "c": "x"})),
        ("a?b=true&c=False&d=None", Spec("a", {"b": True, "c": False, "d": None})),
        ("a?b=-3&c=1e3", Spec("a", {"b": -3, "c": 1000.0})),
        ("a?b=sjf", Spec("a", {"b": "sjf"})),
        ("a?b='1'", Spec("a", {"b": "1"})),
        ("a?b=[1,2]&c={'x': 1, 'y': 2}", Spec("a", {"b": [1, 2], "c": {"x": 1, "y": 2}})),
        ("a?b=c(d=1,e=f(g=2))&h=3", Spec("a", {"b": Spec("c", {"d": 1, "e": Spec("f", {"g": 2})}), "h": 3})),
        ("a?b=x=y", Spec("a", {"b": "x=y"})),
        ("dir/file.py:Class?tie=1", Spec("dir/file.py:Class", {"tie": 1})),
        ("dir/file.py:Class(tie=1)", Spec("dir/file.py:Class", {"tie": 1})),
    ],
)
def test_a_spec_is_a_name_and_its_parameters(text: str, spec: Spec) -> None:
    assert parse(text) == spec


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("?a=1", "has no name before the parameters"),
        ("", "has no name"),
        ("a?b", "'b' in 'a?b' is not parameter=value"),
        ("a?=1", "is not parameter=value"),
        ("a?b=(1", "brackets do not match in 'b=(1'"),
        ("a?b=1)", "brackets do not match"),
        ("a?b=)(", "brackets do not match"),
    ],
)
def test_a_text_that_is_no_spec_is_refused(text: str, told: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text)
    assert told in str(caught.value)


# -- making things ---------------------------------------------------------------------------------------------------


@dataclass
class Typed:
    """Something with a parameter of each type."""

    whole: int = 1
    number: float = 1.0
    flag: bool = False
    word: str = "x"
    choice: Literal["a", "b"] = "a"
    maybe: int | None = None
    either: float | str | None = None
    ordering: Any = field(default_factory=Fifo)


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Typed]:
    """Make `Typed` from the parameters of a spec."""
    monkeypatch.setattr(registry, "find", lambda kind, name: Typed if name == "typed" else FIND(kind, name))
    return lambda parameters: registry.make("ordering", f"typed?{parameters}")


FIND = registry.find


@pytest.mark.parametrize(
    ("parameters", "made"),
    [
        ("whole=3", Typed(whole=3)),
        ("number=3", Typed(number=3.0)),
        ("flag=true", Typed(flag=True)),
        ("word=hello", Typed(word="hello")),
        ("choice=b", Typed(choice="b")),
        ("maybe=4", Typed(maybe=4)),
        ("maybe=none", Typed(maybe=None)),
        ("either=word", Typed(either="word")),
        ("either=1.5", Typed(either=1.5)),
        ("ordering=sjf", Typed(ordering=ShortestEstimate())),
    ],
)
def test_a_parameter_is_what_its_annotation_says(typed: Any, parameters: str, made: Typed) -> None:
    found = typed(parameters)
    assert found == made
    assert [type(value) for value in vars(found).values()] == [type(value) for value in vars(made).values()]


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ("whole=1.5", "field 'whole': typed: 1.5 is not int"),
        ("whole=x", "field 'whole': typed: 'x' is not int"),
        ("whole=true", "True is not int"),
        ("number=x", "'x' is not float"),
        ("flag=1", "1 is not bool"),
        ("choice=c", "unknown value of typed?choice 'c'; known: a, b"),
        ("maybe=x", "'x' is not int"),
        ("wholy=1", "unknown parameter of typed 'wholy'; did you mean 'whole'?"),
        ("ordering=sjv", "unknown ordering 'sjv'; did you mean 'sjf'?"),
    ],
)
def test_a_value_that_a_parameter_does_not_take_is_refused(typed: Any, parameters: str, told: str) -> None:
    with pytest.raises(InputError) as caught:
        typed(parameters)
    assert told in str(caught.value)


def test_an_object_passes_through() -> None:
    ordering = Wfp3()
    assert registry.make("ordering", ordering) is ordering


@pytest.mark.parametrize(
    ("name", "kebab"), [("Fifo", "fifo"), ("ShortestEstimate", "shortest-estimate"), ("Wfp3", "wfp3")]
)
def test_a_class_goes_by_its_name_in_kebab_case(name: str, kebab: str) -> None:
    assert registry.name_of(type(name, (), {})) == kebab


def test_a_class_may_say_its_own_name_and_does_not_hand_it_down() -> None:
    mine = type("Mine", (), {"name": "my-own"})
    assert registry.name_of(mine) == "my-own"
    assert registry.name_of(type("Child", (mine,), {})) == "child"


def test_names_are_first_names_and_spellings_are_all() -> None:
    assert "first-fit" in registry.names("reservation")
    assert "none" not in registry.names("reservation")
    assert {"first-fit", "none"} <= set(registry.spellings("reservation"))
    assert registry.find("reservation", "none") is FirstFit


def test_protocols_are_not_offered() -> None:
    for kind in registry.KINDS:
        assert not any(getattr(thing, "_is_protocol", False) for thing in registry.names(kind).values())


@pytest.mark.parametrize("kind", sorted(kind for kind, own in registry.KINDS.items() if own))
def test_everything_that_can_be_named_is_described(kind: str) -> None:
    rows = registry.describe(kind)
    assert rows
    for row in rows:
        assert row["summary"].endswith("."), row
        assert set(row) == {"kind", "name", "aliases", "parameters", "required", "summary", "source", "origin"}


# -- plain files -----------------------------------------------------------------------------------------------------


@pytest.fixture
def widest(tmp_path: Path) -> Path:
    """A custom policy in a plain file."""
    path = tmp_path / "widest.py"
    path.write_text(WIDEST)
    return path


def test_the_newcomers_policy_has_fifteen_lines_at_most() -> None:
    assert len(WIDEST.splitlines()) <= 15


def test_a_policy_in_a_plain_file_is_found_by_file_and_class(widest: Path) -> None:
    result = simulate(JOBS, policy=f"{widest}:WidestFirst")
    assert result.record.start.tolist() == [0, 15, 10]
    assert result.policy == "Backfilling(ordering=WidestFirst(tie=0.0), reserve=Strict())"


def test_it_takes_its_parameters_and_combines_with_any_rule(widest: Path) -> None:
    made = policy(f"easy?ordering={widest}:WidestFirst(tie=2)")
    assert repr(made) == "Backfilling(ordering=WidestFirst(tie=2.0), reserve=Easy())"
    assert repr(policy(f"{widest}:WidestFirst?tie=0.5")) == (
        "Backfilling(ordering=WidestFirst(tie=0.5), reserve=Strict())"
    )


def test_a_file_describes_its_classes_as_they_are_typed(widest: Path) -> None:
    (row,) = registry.describe_file(widest)
    assert row["name"] == f"{widest}:WidestFirst"
    assert row["parameters"] == {"tie": 0.0}
    assert row["summary"].startswith("Largest core request first")


@pytest.mark.parametrize(
    ("content", "name", "told"),
    [
        (None, "{}:Widest", "no such file; expected a Python file"),
        (WIDEST, "{}:Widest", "unknown class of {} 'Widest'; did you mean 'WidestFirst'?"),
        (WIDEST, "{}", "has more than one class; expected {}:WidestFirst"),
        (WIDEST, "{}:", "has more than one class; expected {}:WidestFirst"),
        (WIDEST, "{}:WidestFirst?ties=1", "unknown parameter of {}:WidestFirst 'ties'; did you mean 'tie'?"),
        ("import nothing_like_it\n", "{}:A", "cannot be imported: ModuleNotFoundError"),
        ("x = 1\nclass A\n", "{} line 2: cannot be imported: SyntaxError", ""),
        ("A = 3\n", "{}:A", "unknown class of {} 'A'; known: none"),
    ],
)
def test_errors_in_a_file_are_reported(tmp_path: Path, content: str | None, name: str, told: str) -> None:
    path = tmp_path / "mine.py"
    if content is not None:
        path.write_text(content)
    if not told:  # the message also contains the line
        name, told = "{}:A", name
    with pytest.raises(InputError) as caught:
        policy(name.format(path))
    assert told.format(path) in str(caught.value)


def test_two_files_of_the_same_name_are_two_modules(tmp_path: Path) -> None:
    made = []
    for folder, sign in (("one", ""), ("two", "-")):
        path = tmp_path / folder / "mine.py"
        path.parent.mkdir()
        path.write_text(f"class Mine:\n    def rank(self, queue, now):\n        return {sign}queue.cores\n")
        made.append(registry.find("ordering", f"{path}:Mine"))
    assert made[0].__module__ != made[1].__module__
    assert sys.modules[made[0].__module__].Mine is made[0]


# -- installed packages ----------------------------------------------------------------------------------------------


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], None]]:
    """Add a package with an entry point to the path, as an installer would."""

    def install(module: str, value: str) -> None:
        (tmp_path / "site").mkdir()
        (tmp_path / "site" / "site_policies.py").write_text(module)
        info = tmp_path / "site" / "site_policies-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: site-policies\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[gridsim.ordering]\nsite = {value}\n")
        monkeypatch.syspath_prepend(tmp_path / "site")
        registry.forget()

    yield install
    monkeypatch.undo()
    sys.modules.pop("site_policies", None)
    registry.forget()


def test_a_policy_of_an_installed_package_is_found_by_name(installed: Callable[[str, str], None]) -> None:
    installed(WIDEST, "site_policies")
    assert repr(policy("easy?ordering=widest-first(tie=1)")).startswith("Backfilling(ordering=WidestFirst(tie=1.0)")
    assert simulate(JOBS, policy="widest-first").record.start.tolist() == [0, 15, 10]
    assert "widest-first" in {row["name"] for row in registry.describe("ordering")}
    digest = hashlib.sha256(WIDEST.encode()).hexdigest()
    told = {"package": "site-policies 1.0", "module": "site_policies", "sha256": digest}
    assert list(simulate(JOBS, policy="easy?ordering=widest-first").plugins) == [told]
    with pytest.raises(UnknownNameError, match="did you mean 'widest-first'"):
        policy("widest-frist")


@pytest.mark.parametrize(
    ("module", "value", "told"),
    [
        ("import nothing_like_it\n", "site_policies", "cannot be imported: ModuleNotFoundError"),
        (WIDEST, "site_policies:WidestFirst", "is not a module; give the module"),
        ("class Fifo: ...\n", "site_policies", "ordering 'fifo' is both gridsim.policy.ordering and site_policies"),
    ],
)
def test_errors_in_an_installed_package_are_reported(
    installed: Callable[[str, str], None], module: str, value: str, told: str
) -> None:
    installed(module, value)
    with pytest.raises(InputError, match=told) as caught:
        policy("sjf")
    assert "site" in str(caught.value)


# -- where plug-ins come from ------------------------------------------------------------------------------------------


def test_a_spec_as_text_is_what_parse_takes() -> None:
    for text in ("easy", "a?b=1&c=x", "a?b=c(d=1,e=f(g=2))&h=3", "dir/file.py:Class?tie=0.5"):
        assert parse(str(parse(text))) == parse(text)


def test_the_files_of_an_object_and_its_parts_are_known_with_their_checksums(tmp_path: Path) -> None:
    path = tmp_path / "widest.py"
    path.write_text(WIDEST)
    made = policy(f"easy?ordering={path}:WidestFirst(tie=2)")
    told = {"file": str(path), "sha256": hashlib.sha256(WIDEST.encode()).hexdigest()}
    assert registry.plugins(made, made) == [told]
    assert registry.plugins(policy("easy")) == []


def test_the_same_relative_name_in_another_folder_is_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        Path("mine.py").write_text(WIDEST.replace("tie: float = 0.0", f"tie: float = {ord(name)}"))
        assert registry.make("ordering", "mine.py:WidestFirst").tie == ord(name)


def test_files_are_located_in_a_folder_anywhere_in_a_spec() -> None:
    folder = Path("re (1)&2")
    assert registry.located("easy?ordering=sjf", folder) == "easy?ordering=sjf"
    assert registry.located("mine.py:Mine?tie=1", folder) == Spec("re (1)&2/mine.py:Mine", {"tie": 1})
    assert registry.located("easy?ordering=mine.py:Mine", folder) == Spec(
        "easy", {"ordering": Spec("re (1)&2/mine.py:Mine", {})}
    )
    absolute = "easy?ordering=/there/mine.py:Mine(tie=1)"
    assert registry.located(absolute, folder) == absolute


def test_a_constructor_that_fails_is_reported_without_a_traceback(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("class Broken:\n    def __init__(self):\n        {}['x']\n")
    with pytest.raises(InputError, match=r"broken.py:Broken: KeyError: 'x'"):
        registry.make("ordering", f"{path}:Broken")
