"""The checks for authors of policies: every policy of gridsim passes, every common error is named."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gridsim import registry
from gridsim.errors import CheckFailed, GridsimError
from gridsim.policy.presets import PRESETS
from gridsim.policy.protocols import NOTHING, Decision, Lanes, starts_of
from gridsim.policy.queue import ClusterView, Queue
from gridsim.policy.scheduler.backfilling import Backfilling
from gridsim.testing import check_ordering, check_reservation, check_scheduler
from gridsim.testing.policies import small_workload


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", registry.names("ordering"))
def test_every_ordering_passes(name: str) -> None:
    check_ordering(name, workloads=2)


@pytest.mark.parametrize("name", registry.names("reservation"))
def test_every_reservation_rule_passes(name: str) -> None:
    check_reservation(name, workloads=2)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [*PRESETS, "conservative?compress=arrival", "conservative?ordering=wfp3"])
def test_every_preset_passes(name: str) -> None:
    check_scheduler(name, workloads=2)


def test_a_policy_in_a_plain_file_is_checked_by_its_spec(tmp_path: Path) -> None:
    (tmp_path / "widest.py").write_text(
        "from dataclasses import dataclass\n\n\n@dataclass\nclass Widest:\n    tie: float = 0.0\n\n"
        "    def rank(self, queue, now):\n        return -(queue.cores + self.tie * queue.estimate)\n"
    )
    check_ordering(f"{tmp_path}/widest.py:Widest?tie=0.5", workloads=2)


@dataclass
class Nan:
    def rank(self, queue: Queue, now: float) -> Any:
        return np.full(len(queue), np.nan)


@dataclass
class Scalar:
    def rank(self, queue: Queue, now: float) -> Any:
        return 1.0


@dataclass
class Words:
    def rank(self, queue: Queue, now: float) -> Any:
        return np.array(["soon"] * len(queue))


@dataclass
class Thief:
    def rank(self, queue: Queue, now: float) -> Any:
        queue.rows.sort()
        queue.requests.estimate[queue.rows] = 1
        return queue.cores


@dataclass
class Moody:
    def rank(self, queue: Queue, now: float) -> Any:
        return np.random.default_rng().random(len(queue))


@dataclass
class NotStatic:
    changes = "static"

    def rank(self, queue: Queue, now: float) -> Any:
        return np.abs(now % 7 - queue.estimate % 7) if len(queue) else queue.cores


@dataclass
class Often:
    changes = "hourly"

    def rank(self, queue: Queue, now: float) -> Any:
        return queue.cores


@dataclass
class Crash:
    def rank(self, queue: Queue, now: float) -> Any:
        return queue.importance  # type: ignore[attr-defined]


@dataclass
class Mute:
    pass


@dataclass
class Beyond:
    def pick(self, queue: Queue, now: float) -> int:
        return len(queue)


class Plain:
    def rank(self, queue: Queue, now: float) -> Any:
        return queue.cores


@dataclass
class Hidden:
    seen: list[int] = field(default_factory=list, compare=False)
    weight: float = field(default=1.0, repr=False)

    def __post_init__(self) -> None:
        self.weight = 2.0 if not self.seen else 1.0

    def __deepcopy__(self, memo: Any) -> Hidden:
        return Hidden([1])

    def rank(self, queue: Queue, now: float) -> Any:
        return queue.cores


@dataclass
class Nightly:
    """Long jobs first before 6 in the morning: the order of two instants of a day is mostly the same."""

    changes = "static"

    def rank(self, queue: Queue, now: float) -> Any:
        return -queue.estimate if now % 86_400 < 6 * 3600 else queue.estimate


@dataclass
class Waited:
    """By arrival, plus a term with the current time that all requests share."""

    changes = "static"

    def rank(self, queue: Queue, now: float) -> Any:
        return queue.submit - now


@pytest.mark.parametrize(
    ("ordering", "message"),
    [
        (Nan, "NaN"),
        (Scalar, "shape .*one number each"),
        (Words, "expected numbers"),
        (Thief, "changes the queue"),
        (Moody, "ranks the same queue differently in a second call"),
        (NotStatic, 'changes = "static", but'),
        (Nightly, 'changes = "static", but its ranks at .* s are not those at'),
        (Waited, 'changes = "static", but its ranks at 0.0 s'),
        (Often, "changes is 'hourly'; expected one of static, linear, pass, start"),
        (Crash, "raises AttributeError"),
        (Mute, "neither rank.* nor pick"),
        (Beyond, "picks 1 of 1 requests"),
        (Plain, "not a dataclass"),
        (Hidden, "not equal to its copy"),
    ],
)
def test_usual_mistakes_in_an_ordering_are_named(ordering: type, message: str) -> None:
    with pytest.raises(GridsimError, match=f"{ordering.__name__}.*{message}"):
        check_ordering(ordering)


@dataclass
class Lopsided:
    blocking = False

    def lanes(self, queue: Queue) -> Lanes:
        return Lanes(np.arange(len(queue)), np.array([1]))


@dataclass
class Open:
    def lanes(self, queue: Queue) -> Lanes:
        return Lanes(np.zeros(len(queue), dtype=np.int64), np.array([1]))


@pytest.mark.parametrize(
    ("rule", "message"), [(Lopsided, "lanes with 1 at index 1; expected whole numbers from 0 to 0"), (Open, "blocking")]
)
def test_usual_mistakes_in_a_reservation_rule_are_named(rule: type, message: str) -> None:
    with pytest.raises(GridsimError, match=f"{rule.__name__}.*{message}"):
        check_reservation(rule)


@pytest.mark.long
@dataclass
class Greedy(Backfilling):
    def setup(self, cluster: Any, rng: Any) -> None:
        super().setup(cluster, rng)
        self._new: list[int] = []

    def commit(self, quote: Any, now: int) -> Any:
        self._new.append(quote.request)
        return ()

    def dispatch(self, now: int) -> Any:
        started, self._new = self._new, []
        return Decision(starts_of(started))


@dataclass
class Lazy(Backfilling):
    def dispatch(self, now: int) -> Any:
        return NOTHING


@dataclass
class Counting(Backfilling):
    """A policy that rejects every third call, not every third request."""

    def setup(self, cluster: ClusterView, rng: np.random.Generator) -> None:
        super().setup(cluster, rng)
        self._asked = 0

    def quote(self, request: int, now: int) -> Any:
        self._asked += 1
        return None if self._asked % 3 == 0 else super().quote(request, now)


@dataclass
class Taking(Backfilling):
    """A policy that counts a request as accepted when it is queried, and accepts thirty."""

    def setup(self, cluster: ClusterView, rng: np.random.Generator) -> None:
        super().setup(cluster, rng)
        self._taken = 0

    def quote(self, request: int, now: int) -> Any:
        self._taken += 1
        return super().quote(request, now) if self._taken <= 30 else None


@pytest.mark.parametrize(
    ("scheduler", "message"),
    [(Counting, "returns different quotes for one request"), (Taking, "only commit may change the state")],
)
def test_a_quote_that_is_no_question_is_named(scheduler: type, message: str) -> None:
    with pytest.raises(CheckFailed, match=message):
        check_scheduler(scheduler)


def test_a_site_that_limits_submissions_only_answers_when_it_is_queried(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(
        "AccountingStorageEnforce=limits\nNodeName=n[1-4] CPUs=4\nPartitionName=all Nodes=n[1-4] Default=YES\n"
    )
    (tmp_path / "qos.txt").write_text("Name|Priority|GrpSubmit\nnormal|0|3\n")
    (tmp_path / "assoc.cfg").write_text("Cluster - 'c'\nParent - 'root'\nUser - 'ann':DefaultAccount='root'\n")
    conf, qos, assoc = (tmp_path / name for name in ("slurm.conf", "qos.txt", "assoc.cfg"))
    check_scheduler(f"slurm?conf={conf}&qos={qos}&assoc={assoc}", workloads=4)


@pytest.mark.parametrize(
    ("scheduler", "message"), [(Greedy, "cores"), (Lazy, "never started"), (Mute, "neither a scheduler")]
)
def test_impossible_schedulers_are_refused(scheduler: type, message: str) -> None:
    with pytest.raises(GridsimError, match=message):
        check_scheduler(scheduler)


def test_small_workloads_hold_the_corner_cases() -> None:
    workload = small_workload(np.random.default_rng(1), jobs=200)
    assert (workload.runtime > workload.estimate).any()
    assert (workload.runtime < workload.estimate).any()
    assert (workload.cores == 16).any()
    assert (np.diff(workload.submit) == 0).any()
    exact = small_workload(np.random.default_rng(1), exact=True)
    assert (exact.runtime == exact.estimate).all()
