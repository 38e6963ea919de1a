"""What a simulation under some policies would not follow of their sites' files: a question that needs no run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gridsim.model.site import Notice
from gridsim.model.time import NEVER
from gridsim.model.workload import Workload
from gridsim.policy.capabilities import capabilities_of
from gridsim.run_setup import notices_of as notices_under

__all__ = ["notices_of"]


def notices_of(policies: Mapping[str, Any], workload: Workload) -> dict[str, tuple[Notice, ...]]:
    """Notices by label, of those policies that know a site; the last job is expected to end as in the log."""
    latest, end = workload.submit + workload.estimate, workload.logged_end
    last = int((latest if end is None else np.where(end < NEVER, end, latest)).max(initial=0))
    return {
        label: notices_under(policy, workload, last)
        for label, policy in policies.items()
        if capabilities_of(policy).site
    }
