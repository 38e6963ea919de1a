"""Templates of sentences: each is used, and each name in use exists with these fields."""

from __future__ import annotations

import ast
import string
from pathlib import Path

import pytest

from gridsim.report import markup as module
from gridsim.report.markup import texts

FOLDER = Path(module.__file__).parent


def used() -> dict[tuple[str, str], set[str]]:
    """Fields that are given to each template."""
    found: dict[tuple[str, str], set[str]] = {}
    for path in FOLDER.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        tables = [it.args for it in calls if ast.unparse(it.func) == "text_table"]
        found.update({(ast.literal_eval(subject), ast.literal_eval(name)): set() for subject, name in tables})
        subject = [ast.literal_eval(it.args[0]) for it in calls if ast.unparse(it.func) == "texts"]
        for it in calls:
            if ast.unparse(it.func) == "_text":
                given = {keyword.arg for keyword in it.keywords if keyword.arg}
                name = (subject[0], ast.literal_eval(it.args[0]))
                assert found.setdefault(name, given) == given
    return found


def fields(text: object) -> set[str]:
    """Names of the values of a template; none of a table."""
    parts = string.Formatter().parse(text) if isinstance(text, str) else ()
    return {field.split(".")[0].split("[")[0] for _, field, _, _ in parts if field}


def test_every_template_is_used_and_every_name_has_one() -> None:
    there = {
        (path.stem, name): fields(text)
        for path in (FOLDER / "templates").glob("*.toml")
        for name, text in module.templates(path.stem).items()
    }
    assert used() == there


def test_a_template_that_is_missing_is_named_with_its_file() -> None:
    with pytest.raises(LookupError, match=r"whatif\.toml: none: 'none' is missing"):
        texts("whatif")("none")
    with pytest.raises(LookupError, match=r"whatif\.toml: saturated: 'found' is missing"):
        texts("whatif")("saturated", labels=[])


def test_fields_are_formatted_by_the_functions_of_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(module.templates("whatif"), "drawn", "{n:counted job}, {share:percent}, {x:.2f}")
    assert texts("whatif")("drawn", n=1, share=0.5, x=2) == "1 job, 50 %, 2.00"


def test_templates_are_compiled_once_and_without_a_cache_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one.j2").write_text("{{ 1 + 1 }}", encoding="utf-8")
    for folder in (tmp_path, tmp_path / "missing"):  # a full disk is an OSError as well
        monkeypatch.setattr(module, "FOLDER", str(folder))
        module.environment.cache_clear()
        assert module.environment(tmp_path).get_template("one.j2").render() == "2"
    assert len(list(tmp_path.rglob("*.cache"))) == 1
    module.environment.cache_clear()
