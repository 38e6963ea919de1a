"""Folder of finished units, one file each, written atomically, so that interruptions at any time are harmless.

- ``campaign.json``: identity of the units, namely scenario, version of gridsim, and checksums of the inputs.
- ``runs/…``: results. They depend only on recipe and inputs, not on machine, time or order of the runs.
- ``checksums*.jsonl``: SHA-256 of each result and of its further files, one line per unit.
- ``failed/….json``: units that raised an error, with their tracebacks; deleted when they succeed.
- ``journal*.jsonl``: machine, time and duration of each unit; a log, not a result.
- ``lock*``: held while a driver works on the store.

A unit is finished when its file exists. A file that differs from its checksum, or has none, is damaged, and its unit
is repeated. In a store without checksums, written by an earlier version, results that end with a line break are
accepted. Files are flushed to disk before they are renamed, so that files are complete even after a power failure.
Locks are those of the operating system and end with the process that holds them.
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
"""Timeout for a lock, s, since another process may be checking it or about to end."""


class Failure(NamedTuple):
    """Failed unit: its text, the error in one line, and its location."""

    unit: str
    error: str
    traceback: str


@dataclass(frozen=True, slots=True)
class Shard:
    """Part *number* of *parts* of a campaign, for job arrays.

    Examples
    --------
    >>> Shard.of("2/4"), str(Shard.of("2/4")), Shard().is_complete
    (Shard(number=2, parts=4), '2/4', True)
    """

    number: int = 1
    parts: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.parts:
            raise InputError(f"'{self}' is not a part; expected i/n with i from 1 to n, such as 1/4", field="shard")

    @classmethod
    def of(cls, text: str) -> Shard:
        """Return the part given as ``i/n``.

        Raises
        ------
        InputError
            If the text is invalid.
        """
        number, _, parts = text.partition("/")
        try:
            return cls(int(number), int(parts))
        except ValueError:
            raise InputError(f"'{text}' is not a part; expected i/n, such as 1/4", field="shard") from None

    def __str__(self) -> str:
        return f"{self.number}/{self.parts}"

    @property
    def is_complete(self) -> bool:
        """True if it is the only part."""
        return self.parts == 1

    @property
    def suffix(self) -> str:
        """Suffix of the names of its files."""
        return "" if self.is_complete else f"-{self.number}-of-{self.parts}"


class Store:
    """Results of one campaign.

    Parameters
    ----------
    folder : path
        Folder of the store; created if missing.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._known: dict[str, dict[str, Any]] | None = None

    @property
    def note(self) -> Path:
        """File with the identity of the results."""
        return self.folder / "campaign.json"

    def identity(self) -> dict[str, Any]:
        """Return the identity of the results; empty for a new store.

        Raises
        ------
        InputError
            If the folder is not a store.
        """
        try:
            self.note.stat()
        except FileNotFoundError:
            return {}
        found: dict[str, Any] = read_json(self.note, _NOTE, "identity of a campaign's results")
        return found

    def claim(self, identity: Mapping[str, Any], *, may_change: Sequence[str] = ()) -> None:
        """Check and write the identity of the results.

        Raises
        ------
        InputError
            As `check`.
        """
        told, there = self.check(identity, may_change=may_change), self.identity()
        if there != told:
            write_json(self.note, told)

    def check(self, identity: Mapping[str, Any], *, may_change: Sequence[str] = ()) -> dict[str, Any]:
        """Return the new identity of the store, if its results are compatible with *identity*.

        Parameters
        ----------
        identity : mapping
            Identity with JSON types. ``inputs``, checksums by name, may gain and lose names, but not change a
            checksum.
        may_change : sequence of str
            Entries that do not affect results.

        Raises
        ------
        InputError
            If the folder has results of another campaign, another version of gridsim, or other inputs.
        """
        given: dict[str, Any] = json.loads(json.dumps(plain(identity)))
        there = self.identity()
        for name, value in there.items():
            if name == "inputs":
                self._compare_inputs(value, given.get(name, {}))
            elif name not in may_change and given.get(name) != value:
                raise InputError(
                    f"the folder has results of {_short(value)}, not {_short(given.get(name))}; give another folder",
                    path=self.note,
                    field=name,
                )
        if "inputs" in there:
            given["inputs"] = {**there["inputs"], **given.get("inputs", {})}
        return given

    def _compare_inputs(self, there: Mapping[str, str], now: Mapping[str, str]) -> None:
        for name, found in now.items():
            if there.get(name, found) != found:
                raise InputError(
                    f"has changed since results were made from it (SHA-256 {there[name][:12]}… then, {found[:12]}… "
                    f"now); give another folder than {self.folder}, or the original file",
                    path=name,
                )

    @contextmanager
    def held(self, shard: Shard) -> Iterator[None]:
        """Lock the store for a driver: one for the whole, or one for each part.

        Raises
        ------
        InputError
            If another driver is using it.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as locks:
            for path, exclusive in self._locks(shard):
                own = locks.enter_context(path.open("a+", encoding="utf-8"))
                if not _lock(own, exclusive=exclusive, patience=_PATIENCE):
                    raise InputError(
                        f"is in use by {self.driver() or 'another process'}; wait for it, or stop it",
                        path=self.folder,
                    )
            _fill(own, json.dumps({"process": os.getpid(), "host": socket.gethostname(), "since": _now()}) + "\n")
            if shard.is_complete:
                self._sweep_up()
            try:
                yield
            finally:
                _fill(own, "")

    def _locks(self, shard: Shard) -> list[tuple[Path, bool]]:
        """Return the files to lock: shared for the store with parts, exclusive for each part."""
        whole = [(self.folder / "lock", shard.is_complete)]
        return whole if shard.is_complete else [*whole, (self.folder / f"lock{shard.suffix}", True)]

    def driver(self) -> str | None:
        """Return a text on the driver that is using the store; None if there is none."""
        told = []
        for path in sorted(self.folder.glob("lock*")):
            with path.open(encoding="utf-8") as file:
                if _lock(file, exclusive=False):
                    continue  # left over from a killed driver
                try:
                    driver = json.loads(file.read())
                except ValueError:  # it is just starting or ending
                    told.append("another process")
                    continue
            told.append(f"process {driver['process']} on {driver['host']} since {driver['since']}")
        return " and ".join(told) or None

    def _sweep_up(self) -> None:
        """Remove partly written files of a killed driver; no other process writes now."""
        below = [f"{folder}/**/.*" for folder in (RUNS, "failed", "records")]
        attached = [f".*.{kind}.????????" for kind in ("json", "jsonl", "csv")]
        for path in [it for pattern in below + attached for it in self.folder.glob(pattern)]:
            if path.is_file():
                path.unlink(missing_ok=True)

    def take_over(self, other: Store) -> int:
        """Copy the finished and failed units of another store of the same campaign that are missing here.

        Returns
        -------
        int
            Number of copied results.

        Raises
        ------
        InputError
            If both have different results of the same unit.

        Warns
        -----
        UserWarning
            For a damaged result of the other store, which is not copied.
        """
        copied = 0
        for file in other.files():
            path = other.path(file)
            if not other.is_intact(file):
                warnings.warn(f"{path} is damaged and was not copied; run its campaign again", stacklevel=2)
                continue
            content = path.read_bytes()
            if self.has(file) and self.is_intact(file):
                if self.path(file).read_bytes() != content:
                    raise InputError(f"differs from {self.path(file)}, of the same run", path=path)
                continue
            attached = {
                str(extra.relative_to(other.folder)): extra.read_bytes()
                for extra in sorted((other.folder / "records" / PurePosixPath(file).stem).glob("[!.]*"))
            }
            self.put(file, content, attached)
            copied += 1
        finished = {path.stem for path in (self.folder / RUNS).glob("**/[!.]*")}
        for path in sorted((other.folder / "failed").glob("[!.]*.json")):
            if path.stem not in finished:
                _put(self.folder / "failed" / path.name, path.read_bytes())
        for path in sorted(other.folder.glob("journal*.jsonl")):
            content = path.read_bytes()
            mark = hashlib.sha256(content.partition(b"\n")[0]).hexdigest()[:8]  # a longer journal keeps its name
            _put(self.folder / f"journal-{mark}.jsonl", content)
        return copied

    def path(self, file: str) -> Path:
        """Return the path of the result of a unit."""
        return self.folder / RUNS / file

    def has(self, file: str) -> bool:
        """Return whether a unit is finished."""
        return self.path(file).exists()

    def files(self) -> list[str]:
        """Return the sorted names of all results."""
        return sorted(
            str(it.relative_to(self.folder / RUNS)) for it in (self.folder / RUNS).glob("**/[!.]*") if it.is_file()
        )

    def content(self, file: str) -> bytes:
        """Return the result of a unit.

        Raises
        ------
        InputError
            If the file was changed after it was written.
        """
        content, known = self.path(file).read_bytes(), self._checksums()
        if known is not None and hashlib.sha256(content).hexdigest() != known.get(file, {}).get("sha256"):
            raise InputError("is damaged: it differs from its checksum; run the campaign again", path=self.path(file))
        return content

    def is_intact(self, file: str) -> bool:
        """Return whether the result of a unit and its additional files are unchanged."""
        known = self._checksums()
        if known is None:
            return self.path(file).read_bytes()[-1:] == b"\n"
        if (entry := known.get(file)) is None:
            return False
        sums = {
            self.path(file): entry["sha256"],
            **{self.folder / name: sum_ for name, sum_ in entry["files"].items()},
        }
        return all(path.is_file() and checksum(path) == expected for path, expected in sums.items())

    def discard(self, file: str) -> None:
        """Remove the result of a unit, which is to be repeated."""
        self.path(file).unlink(missing_ok=True)

    def adopt(self, shard: Shard) -> int:
        """Write checksums for all results of a store without any, and return their number.

        Drivers of other shards may do the same simultaneously, each in a separate file.
        """
        files = self.files()  # list results before checksums: other drivers write the checksum before the result
        if self._checksums() is not None:
            return 0
        entries = []
        for file in filter(self.is_intact, files):
            attached = sorted((self.folder / "records" / PurePosixPath(file).stem).glob("[!.]*"))
            sums = {str(it.relative_to(self.folder)): checksum(it) for it in attached}
            entries.append({"unit": file, "sha256": checksum(self.path(file)), "files": sums})
        if entries:
            _put_lines(self.folder / f"checksums{shard.suffix}.jsonl", entries)
        return len(entries)

    def digest(self) -> str:
        """Return one checksum over the checksums of all results."""
        sums = sorted((file, entry["sha256"]) for file, entry in (self._checksums() or {}).items())
        return hashlib.sha256(json.dumps(sums).encode()).hexdigest()

    def sort_checksums(self) -> None:
        """Write all checksums to one file in the order of the units, independent of the order of execution."""
        known = self._checksums()
        if known is None:
            return
        self._known = known = {file: known[file] for file in sorted(known) if self.has(file)}
        _put_lines(self.folder / "checksums.jsonl", known.values())
        for part in self.folder.glob("checksums-*.jsonl"):
            part.unlink()

    def _checksums(self) -> dict[str, dict[str, Any]] | None:
        """Return the checksums by unit; None if the store has none."""
        if self._known is None and any(self.folder.glob("checksums*.jsonl")):
            lines = self._lines("checksums*.jsonl")
            self._known = {
                it["unit"]: it
                for it in lines
                if isinstance(it.get("unit"), str) and "sha256" in it and isinstance(it.get("files"), dict)
            }
        return self._known

    def put(self, file: str, content: bytes, attached: Mapping[str, bytes], shard: Shard | None = None) -> None:
        """Store a finished unit.

        Parameters
        ----------
        file : str
            Name of the result.
        attached : mapping of str to bytes
            Additional files, by name in the store; written first, so that they exist if the result does.
        shard : Shard, optional
            The part whose driver stores it.
        """
        sums = {name: hashlib.sha256(extra).hexdigest() for name, extra in attached.items()}
        entry = {"unit": file, "sha256": hashlib.sha256(content).hexdigest(), "files": sums}
        known = self._checksums() or {}
        self.folder.mkdir(parents=True, exist_ok=True)
        _append(self.folder / f"checksums{(shard or Shard()).suffix}.jsonl", entry)
        self._known = known
        known[file] = entry
        for name, extra in attached.items():
            _put(self.folder / name, extra)
        _put(self.path(file), content)
        self.failure_path(file).unlink(missing_ok=True)

    def put_failure(self, file: str, failure: Failure) -> None:
        """Store the failure of a unit."""
        write_json(self.failure_path(file), failure._asdict())

    def has_failed(self, file: str) -> bool:
        """Return whether a unit failed in its last run."""
        return self.failure_path(file).exists()

    def failure(self, file: str) -> Failure:
        """Return the failure of a unit.

        Raises
        ------
        InputError
            If the file has no such data.
        """
        found = read_json(self.failure_path(file), dict.fromkeys(Failure._fields, str), "why a run failed")
        return Failure(*(found[name] for name in Failure._fields))

    def failure_path(self, file: str) -> Path:
        """Return the path of the failure of a unit."""
        return self.folder / "failed" / f"{PurePosixPath(file).stem}.json"

    def note_down(self, entry: Mapping[str, Any], shard: Shard) -> None:
        """Add a line to the journal."""
        entry = {"at": _now(), "host": socket.gethostname(), **plain(entry)}
        _append(self.folder / f"journal{shard.suffix}.jsonl", entry)

    def journal(self) -> Iterator[Mapping[str, Any]]:
        """Return the lines of all journals; an incomplete last line is ignored."""
        return self._lines("journal*.jsonl")

    def _lines(self, names: str) -> Iterator[dict[str, Any]]:
        """Yield the objects of all files with these names, one per line; damaged lines are ignored."""
        for path in sorted(self.folder.glob(names)):
            with path.open(encoding="utf-8", errors="replace") as file:
                for line in file:
                    with suppress(ValueError, RecursionError):
                        if isinstance(found := json.loads(line), dict):
                            yield found


def _append(path: Path, entry: Mapping[str, Any]) -> None:
    """Append a line to a file; an incomplete line of a killed driver is ended first."""
    line = json.dumps(entry, ensure_ascii=False)
    with naming(path), path.open("a+b") as file:
        file.seek(max(file.seek(0, os.SEEK_END) - 1, 0))
        cut_off = file.read(1) not in (b"", b"\n")
        file.write(b"\n" * cut_off + line.encode() + b"\n")


def _put_lines(path: Path, entries: Iterable[Mapping[str, Any]]) -> None:
    """Write a file of JSON lines, unless it already has this content."""
    content = "".join(f"{json.dumps(entry, ensure_ascii=False)}\n" for entry in entries).encode()
    if not path.is_file() or path.read_bytes() != content:
        _put(path, content)


def _put(path: Path, content: bytes) -> None:
    """Write a file that is flushed to disk before it is renamed."""

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    write_atomically(path, write)


def _lock(file: IO[str], *, exclusive: bool, patience: float = 0.0) -> bool:
    """Try to lock a file for this process, exclusively or shared; *patience* in s."""
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
    """Replace the content of an open file."""
    with naming(Path(file.name)):
        file.truncate(0)
        file.write(text)
        file.flush()


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 80 else f"{text[:77]}…"
