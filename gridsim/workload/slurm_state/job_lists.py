"""Files of a live state, and lists of jobs: ``squeue --json``, ``scontrol -o show job`` and ``squeue -o``."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gridsim.errors import InputError
from gridsim.files import DAMAGED, decoded, parse_json, read_toml, unpacked
from gridsim.model.site_file import SiteClock, minutes
from gridsim.model.site_file.conf import generic_resources
from gridsim.model.site_file.syntax import ConfLine, integer, records
from gridsim.model.time import MICROSECOND, NEVER
from gridsim.schema import ANY, check
from gridsim.workload.formats.sacct import document, values

KEYS: Mapping[str, Mapping[str, str]] = read_toml(Path(__file__).with_name("keys.toml"))
"""Keys of `scontrol` for the columns of ``squeue``, ``sinfo`` and ``squeue_json``, and words."""

WORDS: Mapping[str, Any] = KEYS["words"]
_NAMES = {key.lower(): name for name, key in KEYS["squeue_json"].items()}


class Line(ConfLine):
    """Values of a record by the keys of `scontrol`; errors contain the key of the file, and the job."""

    def __init__(self, path: Path, number: int, words: Mapping[str, str], clock: SiteClock):
        super().__init__(path, number, words)
        self._clock, self.job, self.state = clock, words.get("JobId", ""), ""
        self._names = _NAMES if ".json" in path.suffixes else {}

    def text(self, key: str, default: str = "") -> str:
        return self.rest.get(key.lower(), default)

    def key(self, key: str) -> str:
        """Return the key of the file for a key of `scontrol`."""
        return self._names.get(key.lower(), key)

    def wrong(self, key: str, value: str, expected: str) -> InputError:
        message = f"is '{value[:60]}'{f' for job {self.job[:20]}' if self.job else ''}; expected {expected}"
        return InputError(message, path=self.path, line=self.number, field=self.key(key))

    def count(self, key: str, text: str | None = None) -> int:
        """Return a number, or the least of a range such as 1-4, of a key or of a *text* in it; 0 if it is empty."""
        text = self.text(key) if text is None else text
        return self.read(key, text.partition("-")[0] or "0", integer, "a whole number from 0")

    def split(self, key: str) -> tuple[str, ...]:
        """Return the names in a list with commas; the default partition has a ``*``."""
        return tuple(name.rstrip("*") for name in self.text(key).split(",") if name)

    def hosts(self, key: str) -> tuple[str, ...]:
        return tuple(self.names(self.key(key), self.text(key)))

    def time(self, key: str) -> int:
        """Return a Unix time, s; 0 if it is unknown."""
        if (text := self.text(key)).upper() in WORDS["unknown"]:
            return 0
        return max(self._clock.instant(text, field=self.key(key), path=self.path, line=self.number) // MICROSECOND, 0)

    def seconds(self, key: str) -> int | None:
        """Return a length of time, s; None for no limit, and if it is unknown."""
        if (text := self.text(key)).upper() in WORDS["unknown"]:
            return None
        found = self.read(key, text, minutes, "a time such as 1-00:00:00 or UNLIMITED")
        return found // MICROSECOND if found < NEVER else None


Read = Callable[[Path, str, SiteClock], Iterator[Line]]


def text_of(folder: Path, name: str) -> tuple[Path, str]:
    """Return a file of the folder, which may be compressed with gzip or xz, and its text; empty if there is none."""
    paths = [folder / f"{name}{suffix}" for suffix in ("", ".gz", ".xz")]
    path = next(filter(Path.is_file, paths), paths[0])
    try:
        text = decoded(unpacked(path.read_bytes()), path, "replace") if path.is_file() else ""
    except DAMAGED as error:
        raise InputError(f"cannot be read, or is damaged ({error}); copy it again", path=path) from error
    if text and not text.endswith("\n") and not name.endswith(".json"):
        raise InputError("was cut: its last line has no end; collect it again", path=path, line=text.count("\n") + 1)
    return path, text


def job_lines(folder: Path, clock: SiteClock) -> tuple[Path, list[Line]]:
    """Return the first of the three lists that the folder has, and its jobs.

    Raises
    ------
    InputError
        For a folder without such a list, and for a list that was cut or has other contents.
    """
    lists: dict[str, Read] = {"squeue.json": _document, "scontrol_job.txt": _shown, "squeue.txt": _printed}
    for name, read in lists.items():
        path, text = text_of(folder, name)
        if not path.is_file():
            continue
        lines = list(read(path, text, clock))
        active = (*WORDS["running"], *WORDS["waiting"])
        for line in lines:  # a flag decides whether a job holds nodes or is held
            first, *flags = line.text("JobState").split(",")
            line.state = next((flag for flag in flags if flag in active), first)
            if line.state not in values.STATES:
                raise line.wrong("JobState", line.state, "a state such as RUNNING or PENDING")
        return path, lines
    raise InputError(f"has no list of jobs; expected {', '.join(lists)}", path=folder)


def _document(path: Path, text: str, clock: SiteClock) -> Iterator[Line]:
    data = text.encode()
    content = parse_json(data, path, "the whole output of squeue --json")
    check(content, {"jobs": [{"job_id": ANY}]}, path=path, data=data)
    for line, job in document.Document(io.BytesIO(data), path).entries():
        words: dict[str, str] = {}
        for name, key in KEYS["squeue_json"].items():
            words[key] = _text(job.get(name)) or words.get(key, "")
        yield Line(path, line, words, clock)


def _text(value: Any) -> str:
    """Return a value of the document as text: empty if it is unset, ``UNLIMITED`` for an infinite number."""
    if isinstance(value, Mapping):
        found = document.number(value)
        return "" if found is None else "UNLIMITED" if found < 0 else str(found)
    if isinstance(value, list):
        return ",".join(each for each in value if isinstance(each, str))
    return "" if value is None else str(value).encode("utf-8", "replace").decode()


_NAME = re.compile(r"^(JobId=\d+ (?:Array\S+ )*)JobName=.*?( UserId=\S+\(\d+\) GroupId=)", re.DOTALL | re.MULTILINE)
"""Name of a job, which can contain blanks, line ends and ``=``."""


def _shown(path: Path, text: str, clock: SiteClock) -> Iterator[Line]:
    text = _NAME.sub(lambda found: found[1] + "\n" * found[0].count("\n") + found[2], text)
    for line in shown(path, text, clock, "JobId", "-a -o show job"):
        tres, user = line.text("TRES"), line.text("UserId").partition("(")[0]
        line.rest = {"alloctres": tres, "reqtres": tres} | line.rest | {"userid": user}
        yield line


def shown(path: Path, text: str, clock: SiteClock, first: str, command: str) -> Iterator[Line]:
    """Yield the records of the output of `scontrol`, which begin with a key; of a repeated key, the first counts."""
    for number, pairs in records(path, text.split("\n"), first, f"scontrol {command}"):
        yield Line(path, number, dict(reversed(pairs)), clock)


def columns_of(command: str) -> str:
    """Return the format of a command for which `KEYS` has a table."""
    return "|".join(KEYS[command])


def split_lines(path: Path, text: str, clock: SiteClock, command: str) -> Iterator[Line]:
    """Yield the lines of a list with the columns of a command; features, which come last, can have delimiters."""
    keys = KEYS[command].values()
    for number, line in enumerate(text.split("\n"), start=1):
        cells = line.split("|", len(keys) - 1)
        if len(cells) < len(keys) and line.strip():
            message = f"has {len(cells)} fields; expected {len(keys)} ({command} -h -o '{columns_of(command)}')"
            raise InputError(message, path=path, line=number)
        texts = ("" if cell.strip() in ("(null)", "N/A") else cell.strip() for cell in cells)
        if line.strip():
            yield Line(path, number, dict(zip(keys, texts, strict=True)), clock)


def _printed(path: Path, text: str, clock: SiteClock) -> Iterator[Line]:
    """Yield the lines of `squeue`, with its resources per node or core as a list for the whole job."""
    for line in split_lines(path, text, clock, "squeue"):
        nodes = line.count("NumNodes")
        memory, unit = values.memory(line.text("MinMemory").encode())
        amounts = {"cpu": line.text("NumCPUs")}
        amounts |= {"mem": f"{memory * (line.count('NumCPUs') if unit == b'c' else nodes)}M"} if memory > 0 else {}
        gpus, _ = generic_resources(line, re.sub("gres[:/]", "", line.text("Gres")))
        amounts |= {f"gres/gpu:{kind}".rstrip(":"): str(count * nodes) for kind, count in gpus.items()}
        listed = ",".join(f"{name}={amount}" for name, amount in amounts.items())
        begin = line.text("StartTime" if line.text("Reason") == "BeginTime" else "SubmitTime")
        line.rest |= {"alloctres": listed, "reqtres": listed, "eligibletime": begin}
        yield line
