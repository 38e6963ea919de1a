"""Code size, repeated implementations and imports have bounds that are only lowered.

``python tests/test_size.py`` prints the counts of this checkout as entries of the table of bounds.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "gridsim"

Function = ast.FunctionDef | ast.AsyncFunctionDef

# Packages by their paths below ``gridsim``; ``policy/*`` is the files of that folder without its subfolders.
PACKAGES = {
    "machine": ("machine",),
    "policy": ("policy/*",),
    "policy/scheduler": ("policy/scheduler",),
    "policy/admission": ("policy/admission",),
    "policy/slurm": ("policy/slurm",),
    "engine": ("engine",),
    "entities": ("entities",),
    "workload": ("workload",),
    "model": ("model",),
    "report, questions, cli": ("report", "questions", "cli"),
    "forecasts": ("forecasts",),
    "metrics, campaign, top level": ("metrics", "campaign", "*"),
    "testing": ("testing",),
}
CORE = ("machine", "policy", "policy/scheduler", "policy/admission", "policy/slurm", "engine", "entities")

BOUNDS = {
    "machine": 2_749,
    "policy": 2_615,
    "policy/scheduler": 3_619,
    "policy/admission": 1_608,
    "policy/slurm": 4_387,
    "engine": 1_766,
    "entities": 3_286,
    "workload": 10_115,
    "model": 5_164,
    "report, questions, cli": 11_539,
    "forecasts": 1_387,
    "metrics, campaign, top level": 8_822,
    "testing": 5_097,
    "core": 20_030,
    "all without testing": 57_057,
    "scheduling cycles": 6,
    "whole-run loops": 2,
    "plans": 1,
    "deadline searches": 3,
    "ledgers of free capacity": 6,
    "fields of Capabilities": 20,
    "imports and __all__, per 1,000 code lines": 93,
    "imports by name": 3,
}
"""The counts of the last commit that lowered them. They are never raised, except for a package that lines move into
while the sum of the core falls."""

# Each entry is one implementation of the same idea, by its main function or class.
IMPLEMENTATIONS = {
    "scheduling cycles": (
        "policy.scheduler.linear_priority:strict_linear",
        "policy.scheduler.list_cycle:run_cycle",
        "policy.scheduler.moldable_cycle:run_moldable_cycle",
        "policy.scheduler.sequential_selection:run_selection",
        "policy.slurm.backfill:run_backfill_cycle",
        "policy.slurm.main_cycle:run_main_cycle",
    ),
    "whole-run loops": (
        "engine.loop:run_loop",
        "engine.tree_loop:run_tree",
    ),
    "plans": ("policy.admission.plan_cycle:settle",),
    "deadline searches": (
        "policy.admission.mrt:depth_first",
        "policy.admission.msb:cheapest",
        "policy.admission.qops:by_slots",
    ),
    "ledgers of free capacity": (
        "engine.events:begin",
        "entities.resource:Machine.take",
        "entities.node_capacity:NodeCapacity.take",
        "policy.slurm.entry_allocation:take",
        "machine.node_profile:hold",
        "machine.running_set:begin_running",
    ),
}

# Steps of the implementations above that have the same arguments.
STEPS = {
    "policy.scheduler.list_cycle:catch_up",
    "policy.scheduler.machines:cycle_in_pool",
    "policy.scheduler.machines:catch_up_on_nodes",
    "policy.scheduler.machines:cycle_on_nodes",
    "policy.scheduler.moldable_cycle:moldable_cycle_in_pool",
    "policy.scheduler.moldable_cycle:moldable_cycle_on_nodes",
}

# Patterns of files that were deleted or renamed.
GONE = (
    "calendar/*.py",
    "machine/nodes_plan.py",
    "machine/profile.py",
    "profile/*.py",
    "policy/admission/deciding.py",
    "policy/admission/vector_kernels.py",
    "policy/admission/dynamic.py",
    "policy/admission/encoded.py",
    "policy/admission/vector_search.py",
    "policy/admission/kernels.py",
    "policy/admission/vector_moves.py",
    "policy/admission/vector_plan.py",
    "**/linking.py",
    "**/machine_code.py",
    "policy/scheduler/kernels.py",
    "policy/scheduler/moldable_schedule.py",
    "policy/scheduler/molding.py",
    "policy/scheduler/picks.py",
    "policy/scheduler/pooled.py",
    "policy/scheduler/pooled_state.py",
    "policy/scheduler/promises.py",
    "policy/scheduler/state.py",
    "policy/scheduler/turns.py",
    "policy/scheduler/vector_molded.py",
    "policy/scheduler/vector_state.py",
    "policy/scheduler/vectors.py",
    "testing/machine/*.py",
    "testing/slurm/*.py",
)

LEAST = 40
"""Least number of code lines of a file: smaller ones belong to the module of their noun."""

# Smaller files, each with its reason; the list is only shortened.
SMALL = {
    "cli/completion.py": "each command is one file",
    "cli/explain.py": "each command is one file",
    "cli/verify.py": "each command is one file",
    "workload/transform/classes.py": "each transform is one file",
    "engine/deadline_loop.py": "a loop with a compile time of its own, which its message names by the module",
    "model/random_streams.py": "a public function, which is independent of all other parts of the model",
    "workload/readers.py": "imports every format: only runs that read a log need it",
}

# Modules that import one another; imports inside functions and by a constant name count.
CIRCLES: tuple[tuple[str, ...], ...] = ()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Nodes of the kinds that the counts look at, in one walk."""
    kinds = (ast.Expr, ast.Assign, ast.AnnAssign, ast.Import, ast.ImportFrom, ast.Call, ast.Constant, ast.JoinedStr)
    return [node for node in ast.walk(tree(path)) if isinstance(node, kinds)]


def span(node: ast.stmt | ast.expr) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


@cache
def code_lines(path: Path) -> frozenset[int]:
    """Lines with a token that is neither comment nor docstring. A statement that is only a string is a docstring."""
    text = path.read_text(encoding="utf-8").split("\n")
    lines = {number for number, line in enumerate(text, 1) if line.strip() and not line.lstrip().startswith("#")}
    for node in nodes(path):  # strings over several lines, which may contain empty lines and a "#"
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)):
            lines.update(span(node))
    for node in nodes(path):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.difference_update(span(node))
    return frozenset(lines)


def files(root: Path, *folders: str) -> list[Path]:
    """Python files below the folders; of ``folder/*`` those of the folder itself."""
    found: list[Path] = []
    for folder in folders or (".",):
        alone = folder.endswith("*")
        place = root / folder.removesuffix("*")
        found += sorted(place.glob("*.py") if alone else place.rglob("*.py"))
    return found


def count(paths: Iterable[Path]) -> int:
    return sum(len(code_lines(path)) for path in paths)


def sizes(root: Path) -> dict[str, int]:
    """Code lines of each package and of their sums."""
    found = {name: count(files(root, *folders)) for name, folders in PACKAGES.items()}
    found["core"] = sum(found[name] for name in CORE)
    found["all without testing"] = count(files(root)) - found["testing"]
    return found


def module_name(root: Path, path: Path) -> str:
    """Dotted name below the package; empty for the package itself."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def functions(root: Path) -> Iterator[tuple[str, Function]]:
    """Functions and methods outside ``testing`` as ``module:function`` and ``module:Class.method``."""
    for path in files(root):
        name = module_name(root, path)
        if name.partition(".")[0] == "testing":
            continue
        for node in tree(path).body:
            if isinstance(node, Function):
                yield f"{name}:{node.name}", node
            elif isinstance(node, ast.ClassDef):
                yield from (
                    (f"{name}:{node.name}.{each.name}", each) for each in node.body if isinstance(each, Function)
                )


def arguments(function: Function) -> list[str]:
    return [each.arg for each in function.args.args]


def calls(function: Function) -> set[str]:
    """Last names of the functions that are called."""
    called = (node.func for node in ast.walk(function) if isinstance(node, ast.Call))
    return {ast.unparse(each).rpartition(".")[2].lstrip("_") for each in called}


def is_cycle(function: Function) -> bool:
    """Return whether a compiled function decides what starts, by its arguments."""
    given = arguments(function)
    compiled = {ast.unparse(each) for each in function.decorator_list} & {"njit", "njit_noalloc", "inline"}
    decides = "started" in given or {"rows", "queue"} <= set(given) or {"ended", "tail"} <= set(given)
    return bool(compiled) and given[:1] == ["now"] and decides and not function.name.startswith("_")


def is_loop(function: Function) -> bool:
    """Return whether a function repeats as long as there is work left."""
    tests = (node.test for node in ast.walk(function) if isinstance(node, ast.While))
    return arguments(function)[:1] == ["work"] and any("work" in ast.unparse(test) for test in tests)


def is_plan(function: Function) -> bool:
    """Return whether a function plans again after an overrun and else compresses the plan."""
    return "compress" in calls(function) and bool(calls(function) & {"replan", "uproot"})


def is_search(function: Function) -> bool:
    """Return whether a function lays requests down on a trial until it has found a plan."""
    return arguments(function)[:1] == ["trial"] and "place_all" in calls(function)


RECOGNISED: dict[str, Callable[[Function], bool]] = {
    "scheduling cycles": is_cycle,
    "whole-run loops": is_loop,
    "plans": is_plan,
    "deadline searches": is_search,
}


def unlisted(root: Path) -> list[str]:
    """Implementations that the lists do not contain."""
    known = STEPS.union(*IMPLEMENTATIONS.values())
    found = [(name, node) for name, node in functions(root) if name not in known]
    return [f"{idea}: {name}" for idea, is_one in RECOGNISED.items() for name, node in found if is_one(node)]


def import_lines(paths: Iterable[Path]) -> int:
    """Code lines of imports and of ``__all__``."""
    found = 0
    for path in paths:
        lines: set[int] = set()
        for node in nodes(path):
            names = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            exports = any(isinstance(name, ast.Name) and name.id == "__all__" for name in names)
            if isinstance(node, ast.Import | ast.ImportFrom) or exports:
                lines.update(span(node))  # type: ignore[arg-type]
        found += len(lines & code_lines(path))
    return found


def named_imports(path: Path) -> list[ast.expr]:
    """Names of modules of the package in calls of ``import_module``, constants and f-strings."""
    called = [
        node.args[0]
        for node in nodes(path)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") and node.args
    ]
    return [name for name in called if ast.unparse(name).lstrip("f")[1:].startswith("gridsim.")]


def imports(root: Path) -> dict[str, set[str]]:
    """Modules of the package that each module imports, anywhere in it."""
    modules = {f"{root.name}.{module_name(root, path)}".rstrip("."): path for path in files(root)}
    found: dict[str, set[str]] = {}
    for name, path in modules.items():
        wanted = {each.value for each in named_imports(path) if isinstance(each, ast.Constant)}
        for node in nodes(path):
            if isinstance(node, ast.Import):
                wanted.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                wanted |= inner & modules.keys() or {node.module}
        found[name] = {str(each) for each in wanted & modules.keys()} - {name}
    return found


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """Groups of modules of which each imports all others of its group, directly or through others."""
    reached: dict[str, set[str]] = {}
    for name in graph:
        seen: set[str] = set()
        ahead = [name]
        while ahead:
            new = graph[ahead.pop()] - seen
            seen |= new
            ahead += new
        reached[name] = seen
    groups = {frozenset(other for other in reached[name] if name in reached[other]) for name in graph}
    return sorted((set(group) for group in groups if group), key=sorted)


def fields_of_capabilities(root: Path) -> int:
    body = tree(root / "policy" / "protocols.py").body
    found = next(node for node in body if isinstance(node, ast.ClassDef) and node.name == "Capabilities")
    return sum(isinstance(node, ast.AnnAssign) for node in found.body)


def counts(root: Path) -> dict[str, int]:
    """Everything that has a bound."""
    code = [path for path in files(root) if path.relative_to(root).parts[0] != "testing"]
    return {
        **sizes(root),
        **{idea: len(entries) for idea, entries in IMPLEMENTATIONS.items()},
        "fields of Capabilities": fields_of_capabilities(root),
        "imports and __all__, per 1,000 code lines": round(1000 * import_lines(code) / max(count(code), 1)),
        "imports by name": sum(len(named_imports(path)) for path in files(root)),
    }


def small_files(root: Path) -> set[str]:
    """Files with fewer than `LEAST` code lines, except ``__init__`` and ``__main__``."""
    named = (path for path in files(root) if path.name not in ("__init__.py", "__main__.py"))
    return {path.relative_to(root).as_posix() for path in named if len(code_lines(path)) < LEAST}


def above(found: dict[str, int]) -> list[str]:
    """Counts above their bounds, in words."""
    return [f"{name}: {n:,d}, bound {BOUNDS[name]:,d}" for name, n in found.items() if n > BOUNDS[name]]


def test_no_count_exceeds_its_bound() -> None:
    found = counts(PACKAGE)
    assert found.keys() == BOUNDS.keys()
    assert above(found) == []


def test_every_file_belongs_to_one_package() -> None:
    counted = [path for folders in PACKAGES.values() for path in files(PACKAGE, *folders)]
    assert sorted(counted) == sorted(files(PACKAGE))


def test_listed_implementations_exist() -> None:
    there = {name for name, _ in functions(PACKAGE)}
    assert STEPS.union(*IMPLEMENTATIONS.values()) - there == set()


@pytest.mark.long
def test_no_implementation_is_missing_from_the_lists() -> None:
    assert unlisted(PACKAGE) == []


def test_every_listed_implementation_of_a_recognised_idea_is_recognised() -> None:
    missed = [
        name
        for name, node in functions(PACKAGE)
        for idea, is_one in RECOGNISED.items()
        if name in IMPLEMENTATIONS[idea] and not is_one(node)
    ]
    assert missed == []


def test_deleted_files_do_not_return() -> None:
    assert [pattern for pattern in GONE if any(PACKAGE.glob(pattern))] == []


def test_small_files_are_those_listed() -> None:
    assert small_files(PACKAGE) == SMALL.keys()


def test_a_small_file_is_found(tmp_path: Path) -> None:
    for name, lines in (("a/__init__", 1), ("a/__main__", 1), ("a/short", LEAST - 1), ("a/enough", LEAST)):
        (tmp_path / "a").mkdir(exist_ok=True)
        (tmp_path / f"{name}.py").write_text("x = 1\n# Comment.\n" * lines)
    assert small_files(tmp_path) == {"a/short.py"}


def test_import_circles_are_those_listed() -> None:
    found = [{name.removeprefix("gridsim.") for name in group} for group in circles(imports(PACKAGE))]
    assert found == [set(group) for group in CIRCLES]


def test_comments_and_docstrings_are_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text('"""Text."""\n\n# Comment.\nx = """a\nb"""  # two lines\n"""Text of\nx."""\n')
    assert code_lines(path) == {4, 5}


def test_growth_is_reported_with_package_count_and_bound(tmp_path: Path) -> None:
    for name, folders in PACKAGES.items():
        path = tmp_path / folders[0].removesuffix("*") / "more.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n" * (BOUNDS[name] + (name == "machine")))
    assert above(sizes(tmp_path)) == [
        f"{name}: {BOUNDS[name] + 1:,d}, bound {BOUNDS[name]:,d}" for name in ("machine", "core", "all without testing")
    ]


@pytest.mark.parametrize(
    ("idea", "text"),
    [
        ("scheduling cycles", "@njit_noalloc\ndef another(now, ended, tail): ..."),
        ("whole-run loops", "def another(work):\n    while work > 0: ..."),
        ("plans", "def another(plan):\n    plan.compress()\n    plan.replan()"),
        ("deadline searches", "def another(trial, order): place_all(trial, order)"),
    ],
)
def test_another_implementation_is_found(tmp_path: Path, idea: str, text: str) -> None:
    (tmp_path / "more.py").write_text(f"{text}\n")
    assert unlisted(tmp_path) == [f"{idea}: more:another"]


def test_an_import_circle_is_found_even_if_an_import_is_by_name(tmp_path: Path) -> None:
    root = tmp_path / "gridsim"
    root.mkdir()
    (root / "a.py").write_text("from gridsim.b import x\n")
    (root / "b.py").write_text("def f():\n    return importlib.import_module('gridsim.a')\n")
    assert circles(imports(root)) == [{"gridsim.a", "gridsim.b"}]
    assert len(named_imports(root / "b.py")) == 1


if __name__ == "__main__":
    for name, found in counts(PACKAGE).items():
        print(
            f'    "{name}": {found:_d},' + ("" if BOUNDS.get(name) == found else f"  # bound {BOUNDS.get(name, 0):_d}")
        )
    for group in circles(imports(PACKAGE)):
        print(f"    {tuple(sorted(name.removeprefix('gridsim.') for name in group))},".replace("'", '"'))
