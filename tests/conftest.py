"""Fixtures that several rooms of tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def shared_folder() -> Path:
    """Folder of specifications and input data beside the project; may not exist."""
    return Path(os.environ.get("GRIDSIM_SHARED", ROOT.parent / "shared"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The shared folder; tests that need it are skipped where it is absent."""
    folder = shared_folder()
    if not (folder / "data").is_dir():
        pytest.skip(f"input data not found at {folder}; set GRIDSIM_SHARED to the folder that holds data/ and spec/")
    return folder
