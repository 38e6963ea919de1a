"""Texts and names avoid the phrases of a private dialect.

``python tests/test_writing.py`` prints the counts of this checkout by directory, and the names;
``python tests/test_writing.py DIRECTORY`` lists the places of one directory.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

_THINGS = r"(?:jobs?|requests?|tasks?|polic(?:y|ies)|schedulers?|clusters?|nodes?|runs?|orderings?|files?|logs?)"
_DATA = r"(?:file|log|page|table|recipe|record|column|line|row|note|it|which|sentence|header|report|answer)"

# Each phrase has enough context to leave out its normal uses.
PHRASES = (
    r"told|tells?\b(?! apart)",
    r"(?:is|are|was|were|be|been) asked|asked (?:for|of|once|anew|to|by|in)|asks? for|asking for",
    r"believed?|believes|beliefs?",
    r"outliv(?:e|es|ed|ing)",
    r"turn(?:s|ed|ing)? (?:\w+ ){0,2}away",
    rf"came|{_THINGS} (?:that |which |who )?comes?|come (?:sooner|later|first|last|next|in)|those that come",
    r"stood|stands?(?! for| out)(?=[ .,;:])",
    r"(?<!chat )room(?! temperature)",
    r"(?:protected |a |its )head(?! of)|the head(?! of (?:a|the|its) (?:file|log|table|page|list))",
    r"(?:put|puts|brought) in order|anew",
    r"lines in time|jobs of several tasks|by area",
    r"of (?:its|their|one's|your|his|our|my) own",
    r"go(?:es)? on|went on|going on|gone on",
    r"plays?(?! a (?:role|part))|played|playing",
    r"nobody|somebody|anybody|everybody",
    r"(?:that|which|what) (?:is|are|was|were) there|where there (?:is|are|was|were) (?:none|no)",
    r"how (?:far|near|much) to trust|how near",
    r"lest|in place of|beside(?!s)",
    rf"{_THINGS},? who|who (?:is|are|was|were|has|have|had|cannot|can|may|waits?|asks?)(?! is| was)",
    rf"{_DATA} (?:says?|said|knows?)|saying nothing|says nothing",
    r"gives? back|given back|take(?:s|n)? back",
    r"keeps? up with",
    r"alike|for ever|once more|at the door|meanwhile",
    r"(?:a|each|every|one|the|this|next|last|main|backfill|scheduling|scheduler's|slurm's) pass(?:es)?(?! through)",
)
_PHRASES = re.compile(rf"\b(?:{'|'.join(PHRASES)})\b")
# A clause as the subject of a sentence: "What is free is kept by node".
_CLAUSE = re.compile(
    r"(?:^|(?<=[.;!] ))(?:What|Who|Whom|Whose|Whoever|Whatever|Whether|How)\b[^.?!]*[.!;:,](?=\s|$)", re.MULTILINE
)
# Parts of names that do not belong to the field.
_NAMES = re.compile(
    r"told|asked|believed|beliefs?|outlived|laid|lay|suited|wish(?:es)?|parcel|alike|reach|room|nobody|somebody|come|came|"
    r"gone|heard|carry(?:ing)?|whole|mold(?:ed|ing)?|head|anew|words|said|knows|ahead",
    re.IGNORECASE,
)


def found_in(text: str) -> list[str]:
    """Phrases of a text to avoid."""
    return [it.group() for it in _PHRASES.finditer(text.lower())] + [it.group()[:60] for it in _CLAUSE.finditer(text)]


def _markdown(text: str) -> str:
    text = re.sub(r"^(```|~~~|:::\{).*?^\1?.*?(```|~~~|:::)\s*$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`\n]*`", "CODE", text)
    return re.sub(r"\]\([^)]*\)", "]", text)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _strings(each)


_DOCSTRING = re.compile(r'^ *r?"""(.*?)"""', re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"(?:^ *|  )# (.*)$", re.MULTILINE)
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def _code_prose(source: str) -> tuple[list[str], list[str]]:
    """Docstrings and comments of a module, and its other texts of three words and more."""
    notes = [re.sub(r"``?[^`]*``?", "CODE", text) for text in _DOCSTRING.findall(source) + _COMMENT.findall(source)]
    texts = _STRING.findall(_COMMENT.sub("", _DOCSTRING.sub("", source)))
    return notes, [text for text in texts if len(re.findall(r"[A-Za-z]{2,}", text)) > 2 and " " in text]


@cache
def prose() -> dict[str, list[tuple[str, str]]]:
    """Texts by directory, each with its file."""
    found: dict[str, list[tuple[str, str]]] = {}

    def add(directory: str, path: Path, texts: list[str]) -> None:
        found.setdefault(directory, []).extend((str(path.relative_to(ROOT)), text) for text in texts)

    add("README", ROOT / "README.md", [_markdown((ROOT / "README.md").read_text(encoding="utf-8"))])
    for path in sorted((ROOT / "docs").rglob("*.md")):
        add(str(path.parent.relative_to(ROOT)), path, [_markdown(path.read_text(encoding="utf-8"))])
    for folder in ("gridsim", "scenarios", "tests", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).parts[:-1]
            directory = "/".join(parts[: 2 if folder == "gridsim" else 1])
            notes, texts = _code_prose(path.read_text(encoding="utf-8"))
            add(directory, path, notes)
            if folder == "gridsim":
                add(f"{directory}: texts", path, texts)
    for path in sorted((ROOT / "gridsim").rglob("*.toml")):
        directory = "/".join(path.relative_to(ROOT).parts[:2])
        add(f"{directory}: texts", path, list(_strings(tomllib.loads(path.read_text(encoding="utf-8")))))
    return found


@cache
def phrases() -> dict[str, int]:
    """Number of phrases to avoid, by directory."""
    return {directory: sum(len(found_in(text)) for _, text in texts) for directory, texts in prose().items()}


def per_thousand_words(directory: str) -> float:
    """Phrases to avoid in 1,000 words of a directory."""
    return 1000 * phrases()[directory] / max(sum(len(text.split()) for _, text in prose()[directory]), 1)


@cache
def names() -> list[tuple[str, str]]:
    """Defined names with a part to avoid, and names of tests with a phrase to avoid; each with its file."""
    found = []
    for path in sorted([*(ROOT / "gridsim").rglob("*.py"), *(ROOT / "tests").rglob("test_*.py")]):
        defined = re.findall(r"^ *(?:async )?(?:def|class) (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
        for name in (path.stem, *defined):
            if name.startswith("test_"):
                avoided = bool(found_in(name.removeprefix("test_").replace("_", " ")))
            else:
                parts = re.findall(r"[A-Z]?[a-z]+", name)
                avoided = path.is_relative_to(ROOT / "gridsim") and any(_NAMES.fullmatch(part) for part in parts)
            if avoided:
                found.append((str(path.relative_to(ROOT)), name))
    return found


def test_a_phrase_to_avoid_is_found_and_a_normal_use_is_not() -> None:
    assert found_in("The scheduler is told of ends; what is free is kept.") == ["told"]
    assert found_in("What is free is kept by node.") == ["What is free is kept by node."]
    assert found_in("Nobody stood before it.") == ["nobody", "stood"]
    assert not found_in("The abbreviation stands for response time. What would another policy change?")
    assert not found_in("The head of the file lists the columns, besides the units.")


def test_prose_avoids_the_phrases() -> None:
    """``python tests/test_writing.py DIRECTORY`` lists the places."""
    assert {directory: n for directory, n in phrases().items() if n} == {}


def test_names_avoid_the_words() -> None:
    assert names() == []


if __name__ == "__main__":
    if sys.argv[1:]:
        for file, text in prose()[sys.argv[1]]:
            for phrase in found_in(text):
                print(f"{file}: {phrase}")
    else:
        for directory, count in sorted(phrases().items()):
            print(f"{directory}: {count}, {per_thousand_words(directory):.1f} per 1,000 words")
        for file, name in names():
            print(f"{file}: {name}")
