"""What a simulation under some policies would not follow of their sites' files: a question that needs no run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gridsim.model.site import Notice
from gridsim.model.workload import Workload
from gridsim.policy.capabilities import capabilities_of
from gridsim.simulation import with_epoch

__all__ = ["notices_of"]


def notices_of(policies: Mapping[str, Any], workload: Workload) -> dict[str, tuple[Notice, ...]]:
    """Notices by label, of those policies that know a site."""
    made = {label: with_epoch(policy, workload) for label, policy in policies.items()}
    return {label: tuple(it.notices) for label, it in made.items() if capabilities_of(it).notices}
