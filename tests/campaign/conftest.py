"""Small sweeps, drivers in separate processes, and policies that wait, raise or kill their worker."""

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

PATIENCE = 300.0  # seconds; far longer than any step

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
    """Poll a condition and return its first true value."""
    end = time.monotonic() + PATIENCE
    while not (answer := condition()):
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.02)
    return answer


def alive(pid: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _heeding_interrupts() -> None:
    """In the new process: a shell makes background commands and their children ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Driver:
    """``gridsim`` in a separate process (and group)."""

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
        """Exit code, standard output, and standard error."""
        out, err = self.process.communicate(timeout=2 * PATIENCE)
        return self.process.returncode, out, err

    def kill(self) -> None:
        """Kill only this process, as the system does when memory runs out."""
        self.process.kill()
        self.process.wait()


class Place:
    """A folder with recipes, and the results of their sweeps."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.drivers: list[Driver] = []

    def write(self, text: str, name: str = "campaign.toml") -> Path:
        """A file next to the others."""
        (self.folder / name).write_text(text)
        return self.folder / name

    def gated(self, numbers: int = 6, opened: tuple[int, ...] = ()) -> Path:
        """A recipe with runs that each wait at a gate."""
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
        """A recipe with one failing run."""
        self.write(BAD, "bad.py")
        return self.write(f"""
policy = "easy?ordering=bad.py:{name}(number={{number}})"
[workload]
model = "lublin?jobs=30"
[factors]
number = {list(range(numbers))}
""")

    def open(self, gate: str = "go") -> None:
        """Let waiting runs continue."""
        (self.folder / gate).touch()

    def let(self, count: int) -> int:
        """Open the gates of the first *count* runs to arrive; return how many others wait."""
        met = sorted(self.folder.glob("met-*"), key=lambda path: path.stat().st_mtime_ns)
        numbers = list(dict.fromkeys(int(path.name.split("-")[1]) for path in met))
        for number in numbers[:count]:
            self.open(f"go-{number}")
        return len(numbers[count:])

    def start(self, *words: str, prefix: tuple[str, ...] = ()) -> Driver:
        """A driver in a separate process."""
        self.drivers.append(Driver(*words, cwd=self.folder, prefix=prefix))
        return self.drivers[-1]

    def met(self) -> dict[int, int]:
        """Runs that arrived at their gate, and their processes."""
        found = [path.name.split("-") for path in self.folder.glob("met-*")]
        return {int(number): int(pid) for _, number, pid in found}

    def forget(self) -> None:
        """Delete the recorded arrivals of runs at their gates."""
        for path in self.folder.glob("met-*"):
            path.unlink()

    def runs(self, store: str = "campaign-results") -> dict[str, bytes]:
        """Bytes of the finished runs in a store."""
        return results(self.folder / store)

    def done(self, store: str = "campaign-results") -> int:
        """Number of finished runs, while others are being written."""
        return sum(not path.name.startswith(".") for path in (self.folder / store / "runs").glob("*/*"))

    def journal(self, store: str = "campaign-results") -> list[dict[str, Any]]:
        """Lines of all journals of the store."""
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
    """Bytes of the finished runs of a store, including any half-written files."""
    return {
        str(path.relative_to(store)): path.read_bytes()
        for path in sorted((store / "runs").rglob("*"))
        if path.is_file()
    }


def everything(store: Path) -> dict[str, bytes]:
    """All content that must not depend on how runs were executed."""
    return {**results(store), **{name: (store / name).read_bytes() for name in ("campaign.json", "runs.csv")}}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A temporary folder; remaining drivers are killed at the end."""
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
    """Wait until a condition is true."""
    return until


@pytest.fixture(scope="session")
def is_alive() -> Callable[[int], bool]:
    """Return whether a process is alive."""
    return alive


@pytest.fixture(scope="session")
def contents() -> Callable[[Path], dict[str, bytes]]:
    """All content of a store that must not depend on how its runs were executed."""
    return everything
