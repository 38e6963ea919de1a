"""`gridsim workload publish`: one shareable folder without names, whose files contain the same jobs."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from gridsim.cli import main
from gridsim.workload.read import read_workload

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
LOG = ROOT / "scenarios" / "examples" / "damaged.swf"
KEY = "0123456789abcdef-not-a-key"
FILES = {"README.md", "SHA256SUMS", "checks.json", "jobs.csv", "mapping.toml", "schema.json", "trace.swf.gz"}


def published(folder: Path, *more: str, code: int = 0) -> Path:
    out = folder / "public"
    assert main(["workload", "publish", "--key-text", KEY, "--out", str(out), *more]) == code
    return out


@pytest.fixture(scope="module")
def gpus(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A table with GPUs, memory, accounts, names, and a damaged row that holds one."""
    tmp_path = tmp_path_factory.mktemp("gpus")
    rows = "".join(
        f"{number},hopper-{number % 5},proj-{number % 2},secretjob,{100 + 10 * number},{150 + 10 * number},"
        f"{450.5 + 10 * number},{1 + number % 3},{number % 3},{1024 * (1 + number % 4)},{('Ok', 'Bad')[number % 2]}\n"
        for number in range(1, 61)
    )
    (tmp_path / "secretsite.csv").write_text(
        f"id,who,account,what,at,began,over,n,gpus,mem,state\n{rows}61,hopper-lost,p,q,x,1,2,1,1,1,Ok\n"
    )
    (tmp_path / "map.toml").write_text(
        '[columns]\njob = "id"\nuser = "who"\naccount = "account"\nname = "what"\nstatus = "state"\nnodes = "n"\n'
        'submit = {column = "at", time = "s"}\nstart = {column = "began", time = "s"}\n'
        'end = {column = "over", time = "s"}\ncores = {column = "n", scale = 4}\ngpus = "gpus"\nmemory = "mem"\n'
        '[status]\nOk = "completed"\nBad = "failed"\n'
    )
    return [str(tmp_path / "secretsite.csv"), "--mapping", str(tmp_path / "map.toml")]


@pytest.fixture(scope="module")
def given_away(gpus: list[str]) -> Path:
    return published(Path(gpus[0]).parent, *gpus)


def test_one_folder_has_all_files_that_a_workshop_requires(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = published(tmp_path, str(LOG), "--shift", "--title", "Our site, 2026")
    told = capsys.readouterr().out
    assert "386 jobs, 14 left out; README.md describes them" in told
    assert "README.md has 3 sections for the site to complete" in told
    assert {it.name for it in out.iterdir()} == FILES | {"figures"}
    names = {"arrivals", "sizes", "runtimes", "usage", "users"}
    assert {it.name for it in (out / "figures").iterdir()} == {
        f"{it}.{kind}" for it in names for kind in ("svg", "pdf")
    }
    for line in (out / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((out / name).read_bytes()).hexdigest() == digest
    readme = (out / "README.md").read_text()
    assert readme.startswith("# Our site, 2026\n\n386 jobs of 12 users, submitted within 4 d 1 h.")
    for part in (
        "## System",
        "| `never-ran` | 8 | left out |",
        "Times were shifted",
        "--machine 64",
        "(figures/users.svg)",
    ):
        assert part in readme
    checks = json.loads((out / "checks.json").read_text())
    assert checks["audit"]["rows"] == {"read": 400, "kept": 386, "left_out": {"by the rules for damaged lines": 14}}
    assert checks["facts"]["cores"] == 64
    fields = json.loads((out / "schema.json").read_text())["schema"]["fields"]
    assert [it["name"] for it in fields] == (out / "jobs.csv").read_text().splitlines()[0].split(",")
    assert all(it["description"] for it in fields)


def test_its_files_are_the_same_jobs(gpus: list[str], given_away: Path) -> None:
    out = given_away
    original = read_workload(gpus[0], mapping=gpus[2])
    table = read_workload(out / "jobs.csv", mapping=str(out / "mapping.toml"))
    swf = read_workload(out / "trace.swf.gz")
    assert original.demands is not None
    assert table.demands is not None
    for name in ("job", "submit", "runtime", "estimate", "cores"):
        assert np.array_equal(getattr(table, name), getattr(original, name)), name
        assert np.array_equal(getattr(swf, name), getattr(original, name)), name
    for row in range(len(original)):
        assert table.demands[row] == original.demands[row]
    assert np.array_equal(table.logged["wait"], original.logged["wait"])
    assert np.array_equal(table.logged["status"], original.logged["status"])
    for label in ("user", "account", "executable"):
        one, other = original.labels[label], table.labels[label]
        assert len(set(zip(one.tolist(), other.tolist(), strict=True))) == len(set(one.tolist()))


def test_no_name_is_left(gpus: list[str], given_away: Path) -> None:
    for path in given_away.rglob("*"):
        if path.is_file():
            data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            for name in (b"hopper", b"proj-", b"secret", KEY.encode(), str(Path(gpus[0]).parent).encode()):
                assert name not in data, (path, name)


@pytest.mark.long
def test_the_same_log_and_key_are_the_same_bytes(tmp_path: Path) -> None:
    one = published(tmp_path, str(LOG))
    first = {path.name: path.read_bytes() for path in one.rglob("*") if path.is_file()}
    published(tmp_path, str(LOG))  # into the same folder
    assert first == {path.name: path.read_bytes() for path in one.rglob("*") if path.is_file()}


@pytest.mark.usefixtures("undrawn")
def test_statements_of_the_site_are_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "about.md").write_text("## System\n\nForty nodes.\n")
    out = published(tmp_path, str(LOG), "--about", str(tmp_path / "about.md"), "--machine", "128")
    assert "for the site to complete" not in capsys.readouterr().out
    readme = (out / "README.md").read_text()
    assert "## System\n\nForty nodes.\n\n## Facts" in readme
    assert "To be written" not in readme
    assert "| machine | 128 cores |" in readme


def test_a_trace_is_not_published_over_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = published(tmp_path, str(LOG))
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    published(tmp_path, str(out / "jobs.csv"), "--mapping", str(out / "mapping.toml"), code=2)
    assert "is an input of this command" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()} == before


def test_invalid_input_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "public").mkdir()
    (tmp_path / "public" / "notes.txt").write_text("for us")
    published(tmp_path, str(LOG), code=2)
    assert "contains notes.txt, which publish did not write; expected a new or empty folder" in capsys.readouterr().err
    assert main(["workload", "publish", str(LOG), "--key-text", "short", "--out", str(tmp_path / "x")]) == 2
    assert "the key has 5 bytes" in capsys.readouterr().err
    workflow = ROOT / "scenarios" / "examples" / "workflow.json"
    assert main(["workload", "publish", str(workflow), "--key-text", KEY, "--out", str(tmp_path / "y")]) == 2
    assert "contains workflows" in capsys.readouterr().err
    assert (
        main(["workload", "publish", str(LOG), "--key-text", KEY, "--out", str(tmp_path / "z"), "--about", "no.md"])
        == 2
    )
    assert "no.md: cannot be read" in capsys.readouterr().err
