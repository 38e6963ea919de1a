"""Logs of the archive: known logs, and downloads from a local server."""

from __future__ import annotations

import gzip
import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from gridsim.errors import InputError, UnknownNameError
from gridsim.workload import archive
from gridsim.workload.archive import LOGS, ArchiveLog, fetch, find

CONTENT = gzip.compress(b"; MaxProcs: 8\n1 0 5 10 2 -1 -1 2 20 -1 1 1 -1 -1 1 -1 -1 -1\n", mtime=0)


def entry(content: bytes = CONTENT) -> ArchiveLog:
    return ArchiveLog(
        "Ours-1", "ours", "l_ours", hashlib.sha256(content).hexdigest(), len(content), 1, 8, "a log of ours", "us"
    )


class Server(HTTPServer):
    """Returns the same bytes for every address, and records the requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.body, self.status, self.encoding, self.cut, self.pause = CONTENT, 200, "", 0, 0.0
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/copy"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        time.sleep(self.server.pause)
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(self.server.body)))
        if self.server.encoding:
            self.send_header("Content-Encoding", self.server.encoding)
        self.end_headers()
        self.wfile.write(self.server.body[: len(self.server.body) - self.server.cut])

    def log_message(self, *_: object) -> None:
        """Print no log messages."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.delenv(archive.MIRROR, raising=False)
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    "log", [entry(), *(pytest.param(log, marks=pytest.mark.others) for log in LOGS.values())], ids=lambda log: log.short
)
def test_the_size_and_the_digest_of_an_entry_are_those_of_its_file(
    others: Callable[[str], Path], tmp_path: Path, log: ArchiveLog
) -> None:
    if log == entry():
        path = tmp_path / log.file
        path.write_bytes(CONTENT)
    else:
        path = others(f"swf/{log.file}")
    content = path.read_bytes()
    assert (hashlib.sha256(content).hexdigest(), len(content)) == (log.sha256, log.size)
    jobs = [line for line in gzip.decompress(content).splitlines() if line.strip() and not line.startswith(b";")]
    assert len(jobs) == log.jobs


@pytest.mark.parametrize("log", LOGS.values(), ids=lambda log: log.short)
def test_every_entry_is_complete(log: ArchiveLog) -> None:
    assert len(log.sha256) == 64
    assert log.url() == f"https://www.cs.huji.ac.il/labs/parallel/workload/{log.folder}/{log.name}.swf.gz"
    for name in (log.short, log.short.upper(), log.name, log.file, log.folder):
        assert find(name) is log
    assert log.jobs > 10_000
    assert log.cores >= 128
    assert log.summary
    assert log.thanks


def test_an_unknown_name_answers_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'nasa'"):
        find("nassa")


def test_a_log_is_fetched_whole_and_readable_by_others(server: Server, tmp_path: Path) -> None:
    path, fresh = fetch(entry(), tmp_path / "new" / "folder", mirror=server.url)
    assert fresh
    assert path.read_bytes() == CONTENT
    assert path.stat().st_mode & 0o444
    assert server.asked == ["/copy/l_ours/Ours-1.swf.gz"]
    assert list(path.parent.iterdir()) == [path]


def test_the_environment_names_a_mirror(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(archive.MIRROR, server.url + "/")
    assert fetch(entry(), tmp_path)[1]
    assert server.asked == ["/copy/l_ours/Ours-1.swf.gz"]


def test_existing_files_are_not_fetched_again(server: Server, tmp_path: Path) -> None:
    (tmp_path / "Ours-1.swf.gz").write_bytes(CONTENT)
    assert fetch(entry(), tmp_path, mirror=server.url) == (tmp_path / "Ours-1.swf.gz", False)
    assert server.asked == []


def test_another_file_of_the_name_is_replaced_only_by_force(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "Ours-1.swf.gz"
    path.write_bytes(b"mine")
    with pytest.raises(InputError, match=r"differs from the archive's file.*--force"):
        fetch(entry(), tmp_path, mirror=server.url)
    assert (path.read_bytes(), server.asked) == (b"mine", [])
    assert fetch(entry(), tmp_path, mirror=server.url, force=True)[1]
    assert path.read_bytes() == CONTENT


def test_a_folder_of_the_name_is_never_replaced(server: Server, tmp_path: Path) -> None:
    (tmp_path / "Ours-1.swf.gz").mkdir()
    with pytest.raises(InputError, match="exists but differs from"):
        fetch(entry(), tmp_path, mirror=server.url, force=True)


def test_wrong_bytes_are_refused_and_nothing_is_kept(server: Server, tmp_path: Path) -> None:
    server.body = b"an error page with status 200"
    with pytest.raises(InputError, match=r"returned 29 bytes with sha256 .*the download was discarded"):
        fetch(entry(), tmp_path, mirror=server.url)
    assert list(tmp_path.iterdir()) == []


def test_wrong_bytes_replace_nothing_even_by_force(server: Server, tmp_path: Path) -> None:
    (tmp_path / "Ours-1.swf.gz").write_bytes(b"mine")
    server.body = b"other"
    with pytest.raises(InputError, match="the download was discarded"):
        fetch(entry(), tmp_path, mirror=server.url, force=True)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"mine"]


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip"])
def test_a_server_that_calls_the_file_an_encoding_gives_it_all_the_same(
    server: Server, tmp_path: Path, encoding: str
) -> None:
    server.encoding = encoding
    assert fetch(entry(), tmp_path, mirror=server.url)[0].read_bytes() == CONTENT


def test_a_missing_file_is_reported_with_its_address_and_place(server: Server, tmp_path: Path) -> None:
    server.status = 404
    with pytest.raises(InputError, match=r"/copy/l_ours/Ours-1.swf.gz cannot be .* \(the server returned 404") as e:
        fetch(entry(), tmp_path, mirror=server.url)
    assert e.value.path == tmp_path / "Ours-1.swf.gz"
    assert list(tmp_path.iterdir()) == []


def test_a_connection_that_breaks_off_leaves_nothing(server: Server, tmp_path: Path) -> None:
    server.cut = 10
    with pytest.raises(InputError, match=r"cannot be downloaded|the download was discarded"):
        fetch(entry(), tmp_path, mirror=server.url)
    assert list(tmp_path.iterdir()) == []


def test_a_silent_server_is_given_up(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "_READ", 0.1)
    server.pause = 0.5
    with pytest.raises(InputError, match="the server did not respond in time"):
        fetch(entry(), tmp_path, mirror=server.url)


def test_offline_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    with Server() as closed:
        url = closed.url
    began = time.monotonic()
    with pytest.raises(InputError, match=r"offline or the server is down.*copy it from.*--mirror"):
        fetch(entry(), tmp_path, mirror=url)
    assert time.monotonic() - began < archive._CONNECT + 1


def test_a_mirror_that_is_no_address_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"somewhere/l_ours/Ours-1.swf.gz cannot be downloaded"):
        fetch(entry(), tmp_path, mirror="somewhere")


def test_a_folder_that_cannot_be_made_is_reported(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        fetch(entry(), tmp_path / "file" / "below", mirror=server.url)


def test_progress_ends_at_the_size_of_the_file(server: Server, tmp_path: Path) -> None:
    class Told:
        total = done = 0
        closed = False

        def update(self, size: int) -> None:
            self.done += size

        def reset(self) -> None:
            self.done = 0

        def close(self) -> None:
            self.closed = True

    told = Told()
    fetch(entry(), tmp_path, mirror=server.url, progress=told)
    assert (told.total, told.done, told.closed) == (len(CONTENT), len(CONTENT), True)
