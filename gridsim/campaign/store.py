"""A folder of finished units: each a file, whole or not there. It survives whatever stops the work, at any instant.

=====================  =================================================================================================
``campaign.json``      what the units are of: recipe, version of gridsim, checksums of the inputs
``runs/…``             results; they depend on recipe and inputs alone, not on who made them, when or how
``failed/….json``      units that raised, with their tracebacks; gone when they succeed
``journal*.jsonl``     who finished what when, and how long it took: a log, not a result
``lock*``              held while a driver works on the store
=====================  =================================================================================================

There is no index that could disagree with the files: a unit is finished when its file is there. Files are on the disk
before they get their names, so that also a machine that loses its power leaves whole files. Locks are the operating
system's: they end with the process that holds them, however it ends.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

from gridsim.errors import InputError
from gridsim.files import naming, plain, write_atomically, write_json
from gridsim.schema import ANY, read_json

__all__ = ["RUNS", "Failure", "Shard", "Store"]

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
        if not self.note.exists():
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
                    f"the results there are of {_short(value)}, not {_short(told.get(name))}; give another folder",
                    path=self.note,
                    field=name,
                )
        if "inputs" in there:
            told["inputs"] = {**there["inputs"], **told.get("inputs", {})}
        return told

    def _compare_inputs(self, there: Mapping[str, str], now: Mapping[str, str]) -> None:
        for name, checksum in now.items():
            if there.get(name, checksum) != checksum:
                raise InputError(
                    f"has changed since results were made from it (SHA-256 {there[name][:12]}… then, {checksum[:12]}… "
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
        own = [path for folder in (RUNS, "failed", "records") for path in (self.folder / folder).glob("**/.*")]
        for path in [*own, *self.folder.glob(".*.json.????????"), *self.folder.glob(".*.csv.????????")]:
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
        """
        copied = 0
        for path in sorted((other.folder / RUNS).glob("**/[!.]*")):
            if not path.is_file():
                continue
            file, content = str(path.relative_to(other.folder / RUNS)), path.read_bytes()
            if self.has(file):
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

    def put(self, file: str, content: bytes, beside: Mapping[str, bytes]) -> None:
        """Keep a finished unit.

        Parameters
        ----------
        file : str
            Name of its result.
        beside : mapping of str to bytes
            Further files, by name in the store; written first, so that they are there once the result is.
        """
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
        line = json.dumps({"at": _now(), "host": socket.gethostname(), **plain(entry)}, ensure_ascii=False)
        path = self.folder / f"journal{shard.suffix}.jsonl"
        with naming(path), path.open("a+b") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - 1, 0))
            cut_off = file.read(1) not in (b"", b"\n")  # the last line of a driver that was killed
            file.write(b"\n" * cut_off + line.encode() + b"\n")

    def journal(self) -> Iterator[Mapping[str, Any]]:
        """Lines of all journals; a last line that was cut off is left out."""
        for path in sorted(self.folder.glob("journal*.jsonl")):
            with path.open(encoding="utf-8", errors="replace") as file:
                for line in file:
                    with suppress(ValueError, RecursionError):
                        yield json.loads(line)


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
