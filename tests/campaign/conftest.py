"""Small sweeps, drivers in processes of their own, and policies that wait, raise or kill their worker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 300.0  # seconds; far more than anything takes

GATE = '''"""First come, first served; it waits where a gate is closed."""
import os
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Gate:
    """Waits until there is a file ``go-NUMBER`` or ``go`` in the folder GATE."""

    number: int = 0

    def rank(self, queue, now):
        folder = Path(os.environ["GATE"])
        met = folder / f"met-{self.number}-{os.getpid()}"
        if not met.exists():
            met.touch()
            until = time.monotonic() + 600
            while not (folder / "go").exists() and not (folder / f"go-{self.number}").exists():
                time.sleep(0.01)
                if time.monotonic() > until:
                    raise TimeoutError("nobody opened the gate")
        return queue.submit
'''

BAD = '''"""First come, first served; not for everybody."""
import os
import signal
from dataclasses import dataclass


@dataclass
class Raises:
    """Fails for one number."""

    number: int = 0

    def rank(self, queue, now):
        if self.number == 1:
            raise RuntimeError("number 1 is not liked here")
        return queue.submit


@dataclass
class Kills:
    """Kills the process that it is in, for one number."""

    number: int = 0

    def rank(self, queue, now):
        if self.number == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return queue.submit
'''


def until(condition: Callable[[], Any], what: str) -> Any:
    """The first true answer of a condition, which is asked again and again."""
    end = time.monotonic() + PATIENCE
    while not (answer := condition()):
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.02)
    return answer


def alive(pid: int) -> bool:
    """Whether a process is there, and no zombie that nobody has asked for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _heeding_interrupts() -> None:
    """In the new process: a shell makes what it starts in the background deaf to Ctrl-C, and its children with it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Driver:
    """``gridsim`` in a process (and group) of its own."""

    def __init__(self, *words: str, cwd: Path, prefix: tuple[str, ...] = ()) -> None:
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "gridsim", *words],
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=_heeding_interrupts,
            env={**os.environ, "GATE": str(cwd)},
        )

    def end(self) -> tuple[int, str, str]:
        """Exit code, what it printed, what it said on standard error."""
        out, err = self.process.communicate(timeout=2 * PATIENCE)
        return self.process.returncode, out, err

    def kill(self) -> None:
        """As the system does it when memory runs out: this process, and no other."""
        self.process.kill()
        self.process.wait()


class Place:
    """A folder with recipes, and what became of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.drivers: list[Driver] = []

    def write(self, text: str, name: str = "campaign.toml") -> Path:
        """A file beside the others."""
        (self.folder / name).write_text(text)
        return self.folder / name

    def gated(self, numbers: int = 6, opened: tuple[int, ...] = ()) -> Path:
        """A recipe each of whose runs waits at a gate."""
        self.write(GATE, "gate.py")
        for number in opened:
            self.open(f"go-{number}")
        return self.write(f"""
policy = "easy?ordering=gate.py:Gate(number={{number}})"
[workload]
model = "lublin?jobs=30"
[factors]
number = {list(range(numbers))}
""")

    def bad(self, name: str, numbers: int = 4) -> Path:
        """A recipe one of whose runs fails."""
        self.write(BAD, "bad.py")
        return self.write(f"""
policy = "easy?ordering=bad.py:{name}(number={{number}})"
[workload]
model = "lublin?jobs=30"
[factors]
number = {list(range(numbers))}
""")

    def open(self, gate: str = "go") -> None:
        """Let runs go on."""
        (self.folder / gate).touch()

    def let(self, count: int) -> int:
        """Open the gates of those who came first, so many; how many came and wait."""
        met = sorted(self.folder.glob("met-*"), key=lambda path: path.stat().st_mtime_ns)
        numbers = list(dict.fromkeys(int(path.name.split("-")[1]) for path in met))
        for number in numbers[:count]:
            self.open(f"go-{number}")
        return len(numbers[count:])

    def start(self, *words: str, prefix: tuple[str, ...] = ()) -> Driver:
        """A driver in a process of its own."""
        self.drivers.append(Driver(*words, cwd=self.folder, prefix=prefix))
        return self.drivers[-1]

    def met(self) -> dict[int, int]:
        """Runs that came to their gate, and the processes that they are in."""
        found = [path.name.split("-") for path in self.folder.glob("met-*")]
        return {int(number): int(pid) for _, number, pid in found}

    def forget(self) -> None:
        """Runs come to their gates anew."""
        for path in self.folder.glob("met-*"):
            path.unlink()

    def runs(self, store: str = "campaign-results") -> dict[str, bytes]:
        """What a store has of finished runs, byte by byte."""
        return results(self.folder / store)

    def done(self, store: str = "campaign-results") -> int:
        """How many runs are finished, while others are being written."""
        return sum(not path.name.startswith(".") for path in (self.folder / store / "runs").glob("*/*"))

    def journal(self, store: str = "campaign-results") -> list[dict[str, Any]]:
        """Lines of all its journals."""
        return [
            json.loads(line)
            for path in sorted((self.folder / store).glob("journal*"))
            for line in path.read_text().splitlines()
        ]

    def run_twice(self, store: str = "campaign-results") -> list[str]:
        """Runs that were finished more than once."""
        units = [entry["unit"] for entry in self.journal(store) if "error" not in entry]
        return sorted({unit for unit in units if units.count(unit) > 1})


def results(store: Path) -> dict[str, bytes]:
    """Finished runs of a store, byte by byte; half-written files too, if there were any."""
    return {
        str(path.relative_to(store)): path.read_bytes()
        for path in sorted((store / "runs").rglob("*"))
        if path.is_file()
    }


def everything(store: Path) -> dict[str, bytes]:
    """All that must be the same however runs were made."""
    return {**results(store), **{name: (store / name).read_bytes() for name in ("campaign.json", "runs.csv")}}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A folder of its own; drivers that are left over are killed in the end."""
    monkeypatch.setenv("GATE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    found = Place(tmp_path)
    yield found
    found.open()
    for driver in found.drivers:
        if driver.process.poll() is None:
            os.killpg(driver.process.pid, signal.SIGKILL)
            driver.process.communicate()


@pytest.fixture(scope="session")
def wait_until() -> Callable[[Callable[[], Any], str], Any]:
    """Wait for something to come true."""
    return until


@pytest.fixture(scope="session")
def is_alive() -> Callable[[int], bool]:
    """Whether a process lives."""
    return alive


@pytest.fixture(scope="session")
def contents() -> Callable[[Path], dict[str, bytes]]:
    """All of a store that must be the same however its runs were made."""
    return everything
