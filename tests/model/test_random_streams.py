"""Named random streams."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gridsim.model.random_streams import stream


def draws(*path: str | int, seed: int = 1) -> list[int]:
    return list(stream(seed, *path).integers(1 << 30, size=4))


def test_the_same_path_draws_the_same_numbers() -> None:
    assert draws("workload", "users") == draws("workload", "users")


@pytest.mark.parametrize("other", [("workload",), ("users", "workload"), ("workload", 0), ("cluster", 0)])
def test_another_path_draws_other_numbers(other: tuple[str | int, ...]) -> None:
    assert draws(*other) != draws("workload", "users")


def test_another_seed_draws_other_numbers() -> None:
    assert draws("cluster", 0) != draws("cluster", 0, seed=2)


def test_asking_one_stream_for_more_does_not_move_another() -> None:
    first = stream(7, "a")
    first.random(1000)
    assert stream(7, "b").random() == stream(7, "b").random()


def test_streams_do_not_depend_on_the_hash_seed() -> None:
    code = "from gridsim.model.random_streams import stream; print(stream(3, 'workload').integers(1 << 30))"
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": value},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for value in ("1", "2")
    }
    assert len(told) == 1
