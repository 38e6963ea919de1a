"""How many examples Hypothesis tries: GRIDSIM_HYPOTHESIS=thorough for long runs."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_quiet = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "print_blob": True}
settings.register_profile("usual", max_examples=35, **_quiet)
settings.register_profile("thorough", max_examples=3000, **_quiet)
settings.load_profile(os.environ.get("GRIDSIM_HYPOTHESIS", "usual"))
