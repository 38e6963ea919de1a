"""Logs of the Parallel Workloads Archive: list, checksums and download.

Only logs with a known checksum are listed, so that the data of a study can be obtained again byte for byte. This module
does not parse logs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import requests
from pooch import HTTPDownloader

from gridsim.errors import InputError, UnknownNameError
from gridsim.files import checksum, write_atomically

ARCHIVE = "https://www.cs.huji.ac.il/labs/parallel/workload"
"""Address of the archive."""

MIRROR = "GRIDSIM_ARCHIVE"
"""Environment variable with the address of a mirror."""

CITATION = (
    "The archive asks those who use its logs to name it as the source and to cite: D. G. Feitelson, D. Tsafrir and "
    'D. Krakov, "Experience with using the Parallel Workloads Archive", J. Parallel Distrib. Comput. 74(10), 2014.'
)
"""Acknowledgement that the archive requests."""

_CONNECT, _READ = 5.0, 20.0
"""Timeouts for connecting to a server and for its next bytes (s)."""

_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class ArchiveLog:
    """A log of the archive.

    Attributes
    ----------
    name : str
        Name of the file without its extension.
    short : str
        Short name used on the command line.
    folder : str
        Page of the log in the archive.
    sha256 : str
        Checksum of the compressed file.
    size : int
        Bytes of the compressed file.
    jobs : int
        Number of job lines in the file.
    cores : int
        Number of processors of the machine according to the header.
    summary : str
        Machine, site and period.
    thanks : str
        People to acknowledge according to the header.
    """

    name: str
    short: str
    folder: str
    sha256: str
    size: int
    jobs: int
    cores: int
    summary: str
    thanks: str

    @property
    def file(self) -> str:
        """Name of the file."""
        return f"{self.name}.swf.gz"

    def url(self, mirror: str | None = None) -> str:
        """Return the address of the file: at *mirror*, at the mirror in the environment, or in the archive.

        Examples
        --------
        >>> find("ctc").url("http://localhost:8000/")
        'http://localhost:8000/l_ctc_sp2/CTC-SP2-1996-3.1-cln.swf.gz'
        """
        base = mirror or os.environ.get(MIRROR) or ARCHIVE
        return f"{base.rstrip('/')}/{self.folder}/{self.file}"


_LOGS = (
    ArchiveLog(
        "CTC-SP2-1996-3.1-cln",
        "ctc",
        "l_ctc_sp2",
        "9fa28ac16c4386fb81b72a91d8bd8888281df2948a9d912769d387c5ee285bb4",
        1_487_336,
        77_222,
        338,
        "IBM SP2, Cornell Theory Center, 11 months from June 1996",
        "Dan Dwyer and Steve Hotovy",
    ),
    ArchiveLog(
        "SDSC-SP2-1998-4.2-cln",
        "sdsc",
        "l_sdsc_sp2",
        "e03fe48be50c4ab04d6bb2285296d9c3399e9c1f27ee79b754ad32a14abd9bac",
        1_205_570,
        59_715,
        128,
        "IBM SP2, San Diego Supercomputer Center, 2 years from May 1998",
        "Victor Hazlewood",
    ),
    ArchiveLog(
        "SDSC-BLUE-2000-4.2-cln",
        "blue",
        "l_sdsc_blue",
        "9aab21f3cfa108f3ecefa52391b384d996dcf4216f920186f47a734646b2c658",
        4_070_091,
        243_306,
        1152,
        "IBM SP Blue Horizon, San Diego Supercomputer Center, 32 months from April 2000",
        "Travis Earheart and Nancy Wilkins-Diehr",
    ),
    ArchiveLog(
        "NASA-iPSC-1993-3.1-cln",
        "nasa",
        "l_nasa_ipsc",
        "5589ae9b2fb78e3bf92de097497cf33a91607de1ad54563e43533f7827597f29",
        207_976,
        18_239,
        128,
        "Intel iPSC/860, NASA Ames, 3 months from October 1993; no requested times, no waits",
        "Bill Nitzberg",
    ),
)

LOGS: Mapping[str, ArchiveLog] = {log.short: log for log in _LOGS}
"""Logs by their short names."""


class DownloadProgress(Protocol):
    """Progress display of a download, with the interface of `pooch`."""

    total: int

    def update(self, size: int) -> Any:
        """Report *size* more written bytes."""

    def reset(self) -> Any:
        """Restart the count at 0."""

    def close(self) -> Any:
        """Finish the display."""


def find(name: str) -> ArchiveLog:
    """Return the log with a name: its short name, its file name, or the name of its page in the archive.

    Raises
    ------
    UnknownNameError
        With the nearest name and the list of names.

    Examples
    --------
    >>> find("CTC-SP2-1996-3.1-cln.swf.gz").short, find("l_sdsc_blue").short
    ('ctc', 'blue')
    """
    wanted = name.lower()
    for log in LOGS.values():
        if wanted in (log.short, log.folder, log.name.lower(), f"{log.name}.swf".lower(), log.file.lower()):
            return log
    raise UnknownNameError("log of the archive", name, LOGS)


def fetch(
    log: ArchiveLog,
    folder: str | os.PathLike[str] = ".",
    *,
    mirror: str | None = None,
    force: bool = False,
    progress: DownloadProgress | None = None,
) -> tuple[Path, bool]:
    """Download a log into *folder* if it is missing; return its path and whether it was downloaded.

    Parameters
    ----------
    log : ArchiveLog
        Log to download.
    folder : path
        Target folder, created if missing.
    mirror : str, optional
        Address of a mirror with the folders of the archive.
    force : bool
        Replace an existing file of the same name with another content.
    progress : DownloadProgress, optional
        Progress display of the download.

    Raises
    ------
    InputError
        If another file of that name exists, if the server cannot be reached or has no such file, or if the download
        has the wrong checksum. The download is then removed, and an existing file stays.
    """
    path = Path(folder) / log.file
    if path.is_file() and checksum(path) == log.sha256:
        return path, False
    if path.exists() and not (force and path.is_file()):
        raise InputError(
            f"exists but differs from the archive's file; expected sha256 {log.sha256}; move it away"
            + (", or give --force to replace it" if path.is_file() else ""),
            path=path,
        )
    url = log.url(mirror)

    def download(temporary: Path) -> None:
        _download(url, temporary, progress)
        if (found := checksum(temporary)) != log.sha256:
            raise InputError(
                f"{url} returned {temporary.stat().st_size:,} bytes with sha256 {found}; expected {log.size:,} with "
                f"{log.sha256}; the download was discarded",
                path=path,
            )

    try:
        write_atomically(path, download)
    except requests.RequestException as error:  # also an OSError, so this branch is first
        raise InputError(
            f"{url} cannot be downloaded ({_reason(error)}); copy it from a machine with network access, or give a "
            f"mirror with --mirror or {MIRROR}",
            path=path,
        ) from error
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror or error})", path=path) from error
    return path, True


def _download(url: str, path: Path, progress: DownloadProgress | None) -> None:
    """Write the response of *url* to *path* as sent."""
    downloader = HTTPDownloader(
        progressbar=progress or False,
        chunk_size=_CHUNK,
        timeout=(_CONNECT, _READ),
        headers={"Accept-Encoding": "identity"},
        hooks={"response": _as_sent},
    )
    downloader(url, str(path), None)


def _as_sent(response: requests.Response, **_: Any) -> None:
    """Keep the body compressed: servers that declare ``.gz`` as an encoding would make the client decompress it."""
    response.raw.headers.pop("Content-Encoding", None)


def _reason(error: requests.RequestException) -> str:
    """Return a short reason for a failed request."""
    if error.response is not None:
        return f"the server returned {error.response.status_code} {error.response.reason}"
    if isinstance(error, requests.Timeout):
        return "the server did not respond in time"
    if isinstance(error, requests.exceptions.ChunkedEncodingError):
        return "the connection was interrupted"
    if isinstance(error, requests.ConnectionError):
        return "no connection to the server: this machine is offline or the server is down"
    return str(error)
