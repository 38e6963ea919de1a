"""Hypothesis strategies: small workloads full of ties and corner cases. Needs hypothesis, as tests do."""

from __future__ import annotations

from typing import Literal

from hypothesis import strategies as st

from gridsim.model.workload import Workload

__all__ = ["workloads"]

Estimates = Literal["any", "over", "exact"]

_UNITS = (1.0, 1.0, 1.0, 0.25, 60.0)
"""Lengths of a time step, s: whole seconds mostly."""


@st.composite
def workloads(
    draw: st.DrawFn, *, cores: int = 8, largest: int = 12, estimates: Estimates = "any", deadlines: bool = False
) -> Workload:
    """Workloads for a machine of *cores* cores.

    Parameters
    ----------
    largest : int
        Most jobs.
    estimates : {"any", "over", "exact"}
        Below, at and above the runtimes; never below; exactly the runtimes.
    deadlines : bool
        Whether some jobs have deadlines, feasible or not.
    """
    steps = {"any": (0, 0, 0, 2, 7, -1, -4), "over": (0, 0, 1, 2, 7, 15), "exact": (0,)}[estimates]
    width = st.one_of(st.just(1), st.just(cores), st.integers(1, cores))
    job = st.tuples(
        st.sampled_from((0, 0, 0, 1, 2, 5, 11)),  # gap to the job before
        st.integers(1, 12),
        st.sampled_from(steps),
        width,
        st.one_of(st.none(), st.integers(0, 30)),
    )
    rows = draw(st.lists(job, min_size=1, max_size=largest))
    unit = draw(st.sampled_from(_UNITS))
    submit, now = [], 0
    for gap, *_ in rows:
        now += gap
        submit.append(now * unit)
    runtime = [length * unit for _, length, *_ in rows]
    estimate = [max(1, length + step) * unit for _, length, step, *_ in rows]
    slack = [row[4] if deadlines else None for row in rows]
    return Workload.from_columns(
        submit=submit,
        runtime=runtime,
        estimate=estimate,
        cores=[row[3] for row in rows],
        deadline=[
            float("inf") if extra is None else begin + (extra * unit)
            for begin, extra in zip(submit, slack, strict=True)
        ],
    )
