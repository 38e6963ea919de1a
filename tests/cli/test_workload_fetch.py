"""``gridsim workload fetch``: its output and exit code."""

from __future__ import annotations

import functools
import gzip
import hashlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path

import pytest

from gridsim import cli
from gridsim.workload import archive
from gridsim.workload.archive import ArchiveLog

CONTENT = gzip.compress(b"; MaxProcs: 8\n1 0 5 10 2 -1 -1 2 20 -1 1 1 -1 -1 1 -1 -1 -1\n", mtime=0)
OURS = ArchiveLog("Ours-1", "ours", "l_ours", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT), 1, 8, "ours", "us")


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Address of a folder with one log, the only one of the archive."""
    (tmp_path / "site" / "l_ours").mkdir(parents=True)
    (tmp_path / "site" / "l_ours" / OURS.file).write_bytes(CONTENT)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(archive, "LOGS", {"ours": OURS})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(SimpleHTTPRequestHandler, "log_message", lambda *_: None)
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "site"))
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def run(*words: object) -> int:
    return cli.main(["workload", "fetch", *map(str, words)])


def test_a_fetched_log_can_be_read_and_its_source_is_to_be_cited(mirror: str, capsys) -> None:
    assert run("ours", "--mirror", mirror) == 0
    told = capsys.readouterr()
    assert told.out.splitlines() == [
        f"Ours-1.swf.gz: fetched; {len(CONTENT)} bytes, 1 job lines, 8 cores; thanks to us",
        archive.CITATION,
    ]
    assert told.err == ""
    assert cli.main(["workload", "describe", "Ours-1.swf.gz"]) == 0


def test_the_second_time_nothing_is_fetched(mirror: str, tmp_path: Path, capsys) -> None:
    assert run("ours", "--mirror", mirror, "--out", tmp_path / "logs") == 0
    assert run("Ours-1.swf.gz", "--mirror", "http://127.0.0.1:1", "--out", tmp_path / "logs") == 0
    assert "already exists, not downloaded again" in capsys.readouterr().out


def test_another_file_is_refused_without_force(mirror: str, tmp_path: Path, capsys) -> None:
    (tmp_path / OURS.file).write_bytes(b"mine")
    assert run("ours", "--mirror", mirror) == 2
    assert "--force" in capsys.readouterr().err
    assert run("ours", "--mirror", mirror, "--force") == 0
    assert (tmp_path / OURS.file).read_bytes() == CONTENT


def test_offline_ends_with_2_and_says_what_to_do_by_hand(mirror: str, tmp_path: Path, capsys) -> None:
    assert run("ours", "--mirror", "http://127.0.0.1:1") == 2
    told = capsys.readouterr().err
    for part in (OURS.file, "http://127.0.0.1:1/l_ours/Ours-1.swf.gz", "with network access", archive.MIRROR):
        assert part in told
    assert not (tmp_path / OURS.file).exists()


def test_the_list_names_every_log(capsys) -> None:
    assert run("--list") == 0
    told = capsys.readouterr().out
    assert all(log.short in told and log.file in told for log in archive.LOGS.values())


def test_no_name_shows_the_list_and_ends_with_2(capsys) -> None:
    assert run() == 2
    assert "ctc" in capsys.readouterr().out


def test_an_unknown_name_ends_with_2_before_anything_is_fetched(mirror: str, tmp_path: Path, capsys) -> None:
    assert run("ours", "theirs", "--mirror", mirror) == 2
    assert "unknown log of the archive 'theirs'" in capsys.readouterr().err
    assert not (tmp_path / OURS.file).exists()


def test_help_imports_nothing_for_downloads() -> None:
    code = (
        "import sys; from gridsim.cli import build_parser, workload; build_parser('workload'); "
        "print([name for name in ('pooch', 'requests', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
