"""A folder of finished units: each a file, whole or not there. It survives whatever stops the work, at any instant.

=====================  =================================================================================================
``campaign.json``      what the units are of: recipe, version of gridsim, checksums of the inputs
``runs/…``             results; they depend on recipe and inputs alone, not on who made them, when or how
``checksums*.jsonl``   SHA-256 of each result and of the files beside it, a line a unit
``failed/….json``      units that raised, with their tracebacks; gone when they succeed
``journal*.jsonl``     who finished what when, and how long it took: a log, not a result
``lock*``              held while a driver works on the store
=====================  =================================================================================================

A unit is finished when its file is there. A file that differs from its checksum, or has none, is damaged: its unit is
run again. In a store without any checksums, which an earlier version wrote, results that end with a line break are
accepted as they are. Files are on the disk before they get their names, so that also a machine that loses its power
leaves whole files. Locks are the operating system's: they end with the process that holds them, however it ends.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import socket
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

from gridsim.errors import InputError
from gridsim.files import checksum, naming, plain, write_atomically, write_json
from gridsim.schema import ANY, read_json

RUNS = "runs"
"""Folder of the results."""

_NOTE = {"sweep?": {str: ANY}, "inputs?": {str: str}, "plugins?": {str: str}}
"""Schema of ``campaign.json``."""

_PATIENCE = 1.0
"""Seconds to wait for a lock: somebody may just look, or be about to end."""


class Failure(NamedTuple):
    """A unit that raised: what it is in words, the error in one line, and where it happened."""

    unit: str
    error: str
    traceback: str


@dataclass(frozen=True, slots=True)
class Shard:
    """Part *number* of *parts* that a campaign is cut into, for job arrays.

    Examples
    --------
    >>> Shard.of("2/4"), str(Shard.of("2/4")), Shard().whole
    (Shard(number=2, parts=4), '2/4', True)
    """

    number: int = 1
    parts: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.parts:
            raise InputError(f"'{self}' is no part; expected i/n with i from 1 to n, such as 1/4", field="shard")

    @classmethod
    def of(cls, text: str) -> Shard:
        """Part that is written ``i/n``.

        Raises
        ------
        InputError
            When it is none.
        """
        number, _, parts = text.partition("/")
        try:
            return cls(int(number), int(parts))
        except ValueError:
            raise InputError(f"'{text}' is no part; expected i/n, such as 1/4", field="shard") from None

    def __str__(self) -> str:
        return f"{self.number}/{self.parts}"

    @property
    def whole(self) -> bool:
        """Whether it is all there is."""
        return self.parts == 1

    @property
    def suffix(self) -> str:
        """Of the names of its own files."""
        return "" if self.whole else f"-{self.number}-of-{self.parts}"


class Store:
    """Results of one campaign.

    Parameters
    ----------
    folder : path
        Where they are; made where it is not there yet.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._known: dict[str, dict[str, Any]] | None = None

    @property
    def note(self) -> Path:
        """File that says what the results are of."""
        return self.folder / "campaign.json"

    def identity(self) -> dict[str, Any]:
        """What the results are of; empty where nothing is there.

        Raises
        ------
        InputError
            When the folder is no store.
        """
        try:
            self.note.stat()
        except FileNotFoundError:
            return {}
        found: dict[str, Any] = read_json(self.note, _NOTE, "what the results of a campaign are of")
        return found

    def claim(self, identity: Mapping[str, Any], *, may_change: Sequence[str] = ()) -> None:
        """Note what the results are of, where they may be of it.

        Raises
        ------
        InputError
            As `check` does.
        """
        told, there = self.check(identity, may_change=may_change), self.identity()
        if there != told:
            write_json(self.note, told)

    def check(self, identity: Mapping[str, Any], *, may_change: Sequence[str] = ()) -> dict[str, Any]:
        """What the store is to say of its results, where they may be of this.

        Parameters
        ----------
        identity : mapping
            Of JSON's types. ``inputs``, checksums by name, may gain and lose names, but not change a checksum.
        may_change : sequence of str
            Entries that results there do not depend on.

        Raises
        ------
        InputError
            When the folder holds results of something else, of another version of gridsim or from other inputs.
        """
        told: dict[str, Any] = json.loads(json.dumps(plain(identity)))
        there = self.identity()
        for name, value in there.items():
            if name == "inputs":
                self._compare_inputs(value, told.get(name, {}))
            elif name not in may_change and told.get(name) != value:
                raise InputError(
                    f"the folder has results of {_short(value)}, not {_short(told.get(name))}; give another folder",
                    path=self.note,
                    field=name,
                )
        if "inputs" in there:
            told["inputs"] = {**there["inputs"], **told.get("inputs", {})}
        return told

    def _compare_inputs(self, there: Mapping[str, str], now: Mapping[str, str]) -> None:
        for name, found in now.items():
            if there.get(name, found) != found:
                raise InputError(
                    f"has changed since results were made from it (SHA-256 {there[name][:12]}… then, {found[:12]}… "
                    f"now); give another folder than {self.folder}, or the file as it was",
                    path=name,
                )

    @contextmanager
    def held(self, shard: Shard) -> Iterator[None]:
        """Hold the store while working on it: one driver for the whole, or one for each part.

        Raises
        ------
        InputError
            When another driver works on it.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as locks:
            for path, exclusive in self._locks(shard):
                own = locks.enter_context(path.open("a+", encoding="utf-8"))
                if not _lock(own, exclusive=exclusive, patience=_PATIENCE):
                    raise InputError(
                        f"is worked on by {self.driver() or 'another process'}; wait for it, or stop it",
                        path=self.folder,
                    )
            _fill(own, json.dumps({"process": os.getpid(), "host": socket.gethostname(), "since": _now()}) + "\n")
            if shard.whole:
                self._sweep_up()
            try:
                yield
            finally:
                _fill(own, "")

    def _locks(self, shard: Shard) -> list[tuple[Path, bool]]:
        """Files to lock: parts share the store, and each is one driver's alone."""
        whole = [(self.folder / "lock", shard.whole)]
        return whole if shard.whole else [*whole, (self.folder / f"lock{shard.suffix}", True)]

    def driver(self) -> str | None:
        """Who works on the store now, in words; None where nobody does."""
        told = []
        for path in sorted(self.folder.glob("lock*")):
            with path.open(encoding="utf-8") as file:
                if _lock(file, exclusive=False):
                    continue  # nobody's, whatever a driver that was killed has left in it
                try:
                    driver = json.loads(file.read())
                except ValueError:  # it starts or ends right now
                    told.append("another process")
                    continue
            told.append(f"process {driver['process']} on {driver['host']} since {driver['since']}")
        return " and ".join(told) or None

    def _sweep_up(self) -> None:
        """Take away half-written files of a driver that was killed; nobody else writes now."""
        below = [f"{folder}/**/.*" for folder in (RUNS, "failed", "records")]
        beside = [f".*.{kind}.????????" for kind in ("json", "jsonl", "csv")]
        for path in [it for pattern in below + beside for it in self.folder.glob(pattern)]:
            if path.is_file():
                path.unlink(missing_ok=True)

    def take_over(self, other: Store) -> int:
        """Copy what another store of the same campaign has finished, or failed to, and this one has not.

        Returns
        -------
        int
            Results that were copied.

        Raises
        ------
        InputError
            When both have a result of the same unit, and these differ.

        Warns
        -----
        UserWarning
            For a result of the other store that is damaged; it is not copied.
        """
        copied = 0
        for file in other.files():
            path = other.path(file)
            if not other.is_whole(file):
                warnings.warn(f"{path} is damaged and is not taken over; run its campaign again", stacklevel=2)
                continue
            content = path.read_bytes()
            if self.has(file) and self.is_whole(file):
                if self.path(file).read_bytes() != content:
                    raise InputError(f"differs from {self.path(file)}, of the same run", path=path)
                continue
            beside = {
                str(extra.relative_to(other.folder)): extra.read_bytes()
                for extra in sorted((other.folder / "records" / PurePosixPath(file).stem).glob("[!.]*"))
            }
            self.put(file, content, beside)
            copied += 1
        finished = {path.stem for path in (self.folder / RUNS).glob("**/[!.]*")}
        for path in sorted((other.folder / "failed").glob("[!.]*.json")):
            if path.stem not in finished:
                _put(self.folder / "failed" / path.name, path.read_bytes())
        for path in sorted(other.folder.glob("journal*.jsonl")):
            content = path.read_bytes()
            mark = hashlib.sha256(content.partition(b"\n")[0]).hexdigest()[:8]  # a journal that grew keeps its name
            _put(self.folder / f"journal-{mark}.jsonl", content)
        return copied

    def path(self, file: str) -> Path:
        """Where the result of a unit is, or will be."""
        return self.folder / RUNS / file

    def has(self, file: str) -> bool:
        """Whether a unit is finished."""
        return self.path(file).exists()

    def files(self) -> list[str]:
        """Names of all results, in order."""
        return sorted(
            str(it.relative_to(self.folder / RUNS)) for it in (self.folder / RUNS).glob("**/[!.]*") if it.is_file()
        )

    def content(self, file: str) -> bytes:
        """The result of a unit as it was written.

        Raises
        ------
        InputError
            When the file has changed since.
        """
        content, known = self.path(file).read_bytes(), self._checksums()
        if known is not None and hashlib.sha256(content).hexdigest() != known.get(file, {}).get("sha256"):
            raise InputError("is damaged: it differs from its checksum; run the campaign again", path=self.path(file))
        return content

    def is_whole(self, file: str) -> bool:
        """Whether the result of a unit, and what lies beside it, is as it was written."""
        known = self._checksums()
        if known is None:
            return self.path(file).read_bytes()[-1:] == b"\n"
        if (entry := known.get(file)) is None:
            return False
        sums = {
            self.path(file): entry["sha256"],
            **{self.folder / name: sum_ for name, sum_ in entry["beside"].items()},
        }
        return all(path.is_file() and checksum(path) == expected for path, expected in sums.items())

    def discard(self, file: str) -> None:
        """Remove the result of a unit, which is to be run again."""
        self.path(file).unlink(missing_ok=True)

    def adopt(self, shard: Shard) -> int:
        """Write checksums of the results of a store that has none, all at once, and return the number of these results.

        Drivers of other shards may do the same at the same time, each into its own file.
        """
        files = self.files()  # before the checksums: another driver writes those of a result before the result
        if self._checksums() is not None:
            return 0
        entries = []
        for file in filter(self.is_whole, files):
            beside = sorted((self.folder / "records" / PurePosixPath(file).stem).glob("[!.]*"))
            sums = {str(it.relative_to(self.folder)): checksum(it) for it in beside}
            entries.append({"unit": file, "sha256": checksum(self.path(file)), "beside": sums})
        if entries:
            _put_lines(self.folder / f"checksums{shard.suffix}.jsonl", entries)
        return len(entries)

    def digest(self) -> str:
        """One checksum for the checksums of all results."""
        sums = sorted((file, entry["sha256"]) for file, entry in (self._checksums() or {}).items())
        return hashlib.sha256(json.dumps(sums).encode()).hexdigest()

    def sort_checksums(self) -> None:
        """Put all checksums into one file in the order of the units: the same however the results were made."""
        known = self._checksums()
        if known is None:
            return
        self._known = known = {file: known[file] for file in sorted(known) if self.has(file)}
        _put_lines(self.folder / "checksums.jsonl", known.values())
        for part in self.folder.glob("checksums-*.jsonl"):
            part.unlink()

    def _checksums(self) -> dict[str, dict[str, Any]] | None:
        """Checksums by unit; None where the store keeps none."""
        if self._known is None and any(self.folder.glob("checksums*.jsonl")):
            lines = self._lines("checksums*.jsonl")
            self._known = {
                it["unit"]: it
                for it in lines
                if isinstance(it.get("unit"), str) and "sha256" in it and isinstance(it.get("beside"), dict)
            }
        return self._known

    def put(self, file: str, content: bytes, beside: Mapping[str, bytes], shard: Shard | None = None) -> None:
        """Keep a finished unit.

        Parameters
        ----------
        file : str
            Name of its result.
        beside : mapping of str to bytes
            Further files, by name in the store; written first, so that they are there once the result is.
        shard : Shard, optional
            The part whose driver keeps it.
        """
        sums = {name: hashlib.sha256(extra).hexdigest() for name, extra in beside.items()}
        entry = {"unit": file, "sha256": hashlib.sha256(content).hexdigest(), "beside": sums}
        known = self._checksums() or {}
        self.folder.mkdir(parents=True, exist_ok=True)
        _append(self.folder / f"checksums{(shard or Shard()).suffix}.jsonl", entry)
        self._known = known
        known[file] = entry
        for name, extra in beside.items():
            _put(self.folder / name, extra)
        _put(self.path(file), content)
        self.failure_path(file).unlink(missing_ok=True)

    def put_failure(self, file: str, failure: Failure) -> None:
        """Keep why a unit could not be finished."""
        write_json(self.failure_path(file), failure._asdict())

    def has_failed(self, file: str) -> bool:
        """Whether a unit raised when it was last run."""
        return self.failure_path(file).exists()

    def failure(self, file: str) -> Failure:
        """Why a unit could not be finished.

        Raises
        ------
        InputError
            When the file does not say.
        """
        found = read_json(self.failure_path(file), dict.fromkeys(Failure._fields, str), "why a run failed")
        return Failure(*(found[name] for name in Failure._fields))

    def failure_path(self, file: str) -> Path:
        """Where it says why a unit could not be finished."""
        return self.folder / "failed" / f"{PurePosixPath(file).stem}.json"

    def note_down(self, entry: Mapping[str, Any], shard: Shard) -> None:
        """Add a line to the journal."""
        entry = {"at": _now(), "host": socket.gethostname(), **plain(entry)}
        _append(self.folder / f"journal{shard.suffix}.jsonl", entry)

    def journal(self) -> Iterator[Mapping[str, Any]]:
        """Lines of all journals; a last line that was cut off is left out."""
        return self._lines("journal*.jsonl")

    def _lines(self, names: str) -> Iterator[dict[str, Any]]:
        """Objects of all files with such names, a line each; damaged lines are left out."""
        for path in sorted(self.folder.glob(names)):
            with path.open(encoding="utf-8", errors="replace") as file:
                for line in file:
                    with suppress(ValueError, RecursionError):
                        if isinstance(found := json.loads(line), dict):
                            yield found


def _append(path: Path, entry: Mapping[str, Any]) -> None:
    """Add a line to a file; one that a killed driver left unfinished is ended first."""
    line = json.dumps(entry, ensure_ascii=False)
    with naming(path), path.open("a+b") as file:
        file.seek(max(file.seek(0, os.SEEK_END) - 1, 0))
        cut_off = file.read(1) not in (b"", b"\n")
        file.write(b"\n" * cut_off + line.encode() + b"\n")


def _put_lines(path: Path, entries: Iterable[Mapping[str, Any]]) -> None:
    """Write a file of lines of JSON, unless it has this content."""
    content = "".join(f"{json.dumps(entry, ensure_ascii=False)}\n" for entry in entries).encode()
    if not path.is_file() or path.read_bytes() != content:
        _put(path, content)


def _put(path: Path, content: bytes) -> None:
    """Write a file that is on the disk before it has its name."""

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    write_atomically(path, write)


def _lock(file: IO[str], *, exclusive: bool, patience: float = 0.0) -> bool:
    """Whether the file is locked for this process now, alone or with others; *patience* in s."""
    until = time.monotonic() + patience
    while True:
        try:
            with naming(Path(file.name)):
                fcntl.flock(file, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                return False
            time.sleep(0.05)
        else:
            return True


def _fill(file: IO[str], text: str) -> None:
    """Have a file that is open hold this text alone."""
    with naming(Path(file.name)):
        file.truncate(0)
        file.write(text)
        file.flush()


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 80 else f"{text[:77]}…"
