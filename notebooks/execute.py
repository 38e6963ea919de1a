"""Execute the notebooks of this folder in place: ``python notebooks/execute.py [NOTEBOOK …]``, all where none is named.

Needs the extra ``notebooks``. What is written depends on the notebook alone: no times, no versions, no settings of
whoever runs it.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
TIMEOUT = 600
"""Of a cell, s."""

_OUTSIDE = {"COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1", "PYTHONHASHSEED": "0"}


def executed(path: Path, tries: int = 5) -> nbformat.NotebookNode:
    """The notebook with the outputs that it has now, in a form that says nothing of where and when it was run.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        When a cell raises.
    """
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=TIMEOUT,
            kernel_name=KERNEL["name"],
            record_timing=False,
            coalesce_streams=True,
            resources={"metadata": {"path": folder}},
        )
        try:
            client.execute(env={**os.environ, **_OUTSIDE, "IPYTHONDIR": folder})
        except RuntimeError as error:
            # Of two kernels that start at once, one may be given a port that the other has just taken.
            if tries == 1 or "Kernel died before replying" not in str(error):
                raise
            return executed(path, tries - 1)
    return tidied(notebook)


def tidied(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The same without what differs from machine to machine."""
    notebook.metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for number, cell in enumerate(notebook.cells, start=1):
        cell.id = f"cell-{number:02d}"
        cell.metadata = {}
    return notebook


def main(names: list[str]) -> None:
    """Execute the notebooks of these names, or all, and write them in place."""
    for path in [Path(name) for name in names] or sorted(FOLDER.glob("*.ipynb")):
        begun = time.perf_counter()
        nbformat.write(executed(path), path)
        print(f"{path.name}: {time.perf_counter() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
