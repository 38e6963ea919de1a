"""Fixtures that several rooms of tests share, and how many examples Hypothesis tries.

``GRIDSIM_HYPOTHESIS=thorough`` is for long runs.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

_quiet = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "print_blob": True}
settings.register_profile("usual", max_examples=35, **_quiet)
settings.register_profile("thorough", max_examples=3000, **_quiet)
settings.load_profile(os.environ.get("GRIDSIM_HYPOTHESIS", "usual"))

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
