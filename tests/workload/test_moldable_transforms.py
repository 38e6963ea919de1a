"""Transforms that add ranges of cores, loads, profiles and Cirne's model to workloads."""

from __future__ import annotations

import hashlib
import importlib.resources
import json
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gridsim.errors import InputError
from gridsim.model.moldable import Moldable
from gridsim.model.platform import ClusterSpec, Platform, RouterSpec
from gridsim.model.random_streams import stream
from gridsim.model.speedup import Amdahl, Downey, Linear, Table
from gridsim.model.tasks import Tasks
from gridsim.model.workload import Workload
from gridsim.scenario import transformed
from gridsim.testing.conformance import CASES, check
from gridsim.workload.transform.cirne import NATURES, Cirne, named_counts, parallelisms, sigmas, smallest_sizes
from gridsim.workload.transform.duplicate import Duplicate
from gridsim.workload.transform.load_factor import LoadFactor, OfferedLoad
from gridsim.workload.transform.moldable import MoldableJobs, factor_range
from gridsim.workload.transform.profiles import Profiles, read_profiles
from gridsim.workload.transform.ranges import Ranges

LOG = Workload.from_columns(
    submit=[0, 10, 40, 100], runtime=[60, 30, 20, 5], estimate=[90, 30, 40, 5], cores=[16, 1, 7, 128], cores_stated=128
)


def rng() -> np.random.Generator:
    return stream(1, "test")


def many(cores: Any, machine: int) -> Workload:
    """Return one job of ten seconds per second."""
    n = len(cores)
    return Workload.from_columns(submit=range(n), runtime=[10] * n, cores=cores, cores_stated=machine)


def ranges(workload: Workload) -> Moldable:
    assert workload.moldable is not None
    return workload.moldable


# -- range factor ------------------------------------------------------------------------------------------------------


@given(st.integers(1, 430).flatmap(lambda n: st.tuples(st.integers(1, n), st.just(n))), st.integers(100, 900))
def test_a_range_is_that_of_the_formula_in_fractions_and_holds_the_request(sizes: tuple[int, int], factor: int) -> None:
    requested, machine = sizes
    exact = Fraction(factor, 100)
    low, high = factor_range(np.array([requested]), factor / 100, machine)
    assert low[0] == math.floor((1 - 1 / exact) * requested + 1)
    assert high[0] == requested + math.floor((machine - requested) / exact)
    assert 1 <= low[0] <= requested <= high[0] <= machine


def test_a_factor_above_the_machine_leaves_jobs_rigid() -> None:
    made = ranges(MoldableJobs(range_factor=200).apply(LOG))
    assert made.minimum.tolist() == made.maximum.tolist() == LOG.cores.tolist()


def test_the_parallelism_is_the_maximum_of_each_job() -> None:
    workload = MoldableJobs(range_factor=2, sigma=0.5).apply(LOG)
    made = ranges(workload)
    assert made.minimum.tolist() == [9, 1, 4, 65]
    assert made.maximum.tolist() == [72, 1, 67, 128]
    for row, (cores, maximum) in enumerate(zip(LOG.cores, made.maximum, strict=True)):
        assert made.weight[row] == pytest.approx(Downey(float(maximum), 0.5).speedup(np.array([cores]))[0])
    assert workload.cores.tolist() == LOG.cores.tolist()
    assert workload.runtime.tolist() == LOG.runtime.tolist()


def test_one_parallelism_for_all_cuts_ranges_at_what_is_useful() -> None:
    made = ranges(MoldableJobs(range_factor=1, sigma=1, parallelism=8).apply(LOG))
    assert made.maximum.tolist() == [15, 1, 15, 15]


def test_sequential_jobs_stay_or_follow_the_formula() -> None:
    assert ranges(MoldableJobs(range_factor=1).apply(LOG)).maximum[1] == 1
    assert ranges(MoldableJobs(range_factor=1, sequential="by-formula").apply(LOG)).maximum[1] == 128


@pytest.mark.parametrize("law", [Linear(), Amdahl(0.2), Table([(2, 50), (64, 5)])])
def test_another_law_takes_the_place_of_downeys(law: Any) -> None:
    workload = MoldableJobs(range_factor=1, speedup=law).apply(LOG)
    made = ranges(workload)
    expected = LOG.runtime * (law.relative(np.full(4, 2)) / law.relative(LOG.cores))
    np.testing.assert_array_equal(made.times_on(2, LOG.runtime, LOG.cores)[[0, 2, 3]], np.rint(expected)[[0, 2, 3]])
    assert workload.provenance["transforms"][0]["speedup"] == repr(law)


def test_tasks_of_a_job_have_separate_ranges() -> None:
    tasks = Tasks.from_edges(counts=[2, 1], runtime=[1, 2, 3], cores=[1, 2, 4], edges=[(0, 1)])
    workload = MoldableJobs(range_factor=1, cores=8).apply(Workload.from_tasks(tasks, submit=[0, 1]))
    assert ranges(workload).maximum.tolist() == [1, 8, 8]


def test_ranges_go_through_later_transforms() -> None:
    workload = Duplicate(load=2, arrival="same").apply(MoldableJobs().apply(LOG), rng())
    workload.check()
    assert ranges(workload).minimum.tolist() == [9, 9, 1, 1, 4, 4, 65, 65]


# -- rejected ranges ---------------------------------------------------------------------------------------------------

ALL = [MoldableJobs(), Profiles(), Cirne()]


@pytest.mark.parametrize("transform", ALL)
def test_jobs_that_have_ranges_get_no_others(transform: Any) -> None:
    with pytest.raises(InputError, match="field 'moldable': the jobs already have ranges of cores"):
        transform.apply(transform.apply(LOG, rng()), rng())


@pytest.mark.parametrize("transform", [MoldableJobs(cores=64), Profiles(cores=64), Cirne(cores=64)])
def test_a_job_wider_than_the_machine_has_no_range(transform: Any) -> None:
    with pytest.raises(InputError, match="job 4 requests 128 cores; expected at most the 64 cores of the machine"):
        transform.apply(LOG, rng())


@pytest.mark.parametrize("transform", ALL)
def test_a_machine_of_unknown_size_makes_no_ranges(transform: Any) -> None:
    with pytest.raises(InputError, match="does not state the size of its machine"):
        transform.apply(Workload.from_columns(submit=[0], runtime=[1], cores=[1]), rng())


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: MoldableJobs(range_factor=0.5), "field 'range_factor': is 0.5; expected 1 or more"),
        (lambda: MoldableJobs(range_factor=math.nan), "is nan"),
        (lambda: MoldableJobs(sigma=-1), "field 'sigma': a sigma of -1; expected 0"),
        (lambda: MoldableJobs(parallelism=0.5), "an average parallelism of 0.5"),
        (lambda: MoldableJobs(sigma=2, speedup=Linear()), "give either a speedup, or sigma and parallelism"),
        (lambda: Profiles(least_rows=0), "field 'least_rows': is 0; expected 1"),
        (lambda: LoadFactor(0), "field 'percent': is 0; expected 0.0001 to 100000"),
        (lambda: LoadFactor(math.nan), "is nan"),
        (lambda: OfferedLoad(-0.5), "field 'load': is -0.5; expected a fraction such as 0.65"),
    ],
)
def test_parameters_that_make_no_ranges_or_loads_are_refused(make: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        make()


# -- the machine of a scenario -----------------------------------------------------------------------------------------


def test_transforms_without_a_size_get_that_of_the_machine() -> None:
    made = transformed(LOG, ["moldable?range_factor=1", "offered-load?load=0.5"], cores=256)
    assert ranges(made).maximum.max() == 256
    assert made.offered_load(256) == pytest.approx(0.5, abs=1e-6)
    assert [entry["cores"] for entry in made.provenance["transforms"]] == [256, 256]


def test_of_several_clusters_ranges_end_at_the_widest_and_loads_count_all() -> None:
    clusters = (ClusterSpec("a", 128), ClusterSpec("b", 256))
    platform = Platform(RouterSpec("root", clusters))
    made = transformed(LOG, ["moldable?range_factor=1", "offered-load?load=0.5"], platform=platform)
    assert ranges(made).maximum.max() == 256
    assert made.offered_load(384) == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("cores", [128, None])
def test_a_range_beyond_the_machine_is_refused(cores: int | None) -> None:
    with pytest.raises(InputError, match="field 'cores': is 200; expected at most the 128 of the machine"):
        transformed(LOG, ["moldable?cores=200"], cores=cores)


# -- loads -------------------------------------------------------------------------------------------------------------


def test_a_load_factor_divides_the_gaps() -> None:
    assert (LoadFactor(125).apply(LOG).submit / 1e6).tolist() == [0, 8, 32, 80]
    assert LoadFactor(150).apply(LOG).submit.tolist() == [0, 6_666_667, 26_666_667, 66_666_667]
    assert (LoadFactor(50).apply(LOG).submit / 1e6).tolist() == [0, 20, 80, 200]
    assert LoadFactor(125).apply(LOG).runtime.tolist() == LOG.runtime.tolist()


def test_the_first_submit_stays_and_deadlines_request_the_same_response() -> None:
    log = Workload.from_columns(submit=[100, 200], runtime=[1, 1], cores=[1, 1], deadline=[math.inf, 230])
    made = LoadFactor(200).apply(log)
    assert (made.submit / 1e6).tolist() == [100, 150]
    assert made.deadline[0] == log.deadline[0]
    assert made.deadline[1] / 1e6 == 180


def test_a_load_of_a_hundred_percent_changes_nothing_but_is_reported() -> None:
    made = LoadFactor().apply(LOG)
    assert made.submit.tolist() == LOG.submit.tolist()
    assert json.loads(json.dumps(made.provenance["transforms"])) == [{"transform": "load-factor", "percent": 100.0}]


@given(st.floats(0.01, 5), st.integers(1, 1000))
def test_an_offered_load_is_reached(load: float, cores: int) -> None:
    log = Workload.from_columns(submit=[3, 5_000, 90_000], runtime=[3_000, 77_777, 5], cores=[1, 3, 2])
    assert OfferedLoad(load, cores).apply(log).offered_load(cores) == pytest.approx(load, rel=1e-5)


def test_jobs_of_one_instant_have_no_offered_load() -> None:
    with pytest.raises(InputError, match="field 'submit': all jobs are submitted at once"):
        OfferedLoad().apply(LOG.select([0]))


@pytest.mark.parametrize("transform", [LoadFactor(1e-4), OfferedLoad(1e-6)])
def test_submits_that_no_job_can_count_are_refused(transform: Any) -> None:
    log = Workload.from_columns(submit=[0, 10**9], runtime=[2 * 10**6] * 2, cores=[1, 1], cores_stated=1)
    with pytest.raises(InputError, match="the last job is submitted after"):
        transform.apply(log)


# -- profiles ----------------------------------------------------------------------------------------------------------


def test_the_substitute_holds_sixteen_applications() -> None:
    tables = Profiles().tables()
    assert len(tables) == 16
    assert all(table.points.cores.size == len(table.rows) for table in tables.values())
    assert tables["EP.A"].rows[:2] == ((1, 268.5), (2, 134.3))


def test_the_substitute_is_the_specified_one() -> None:
    packed = importlib.resources.files("gridsim.workload.transform") / "npb_standin.csv"
    specified = "24e80070dd023c2669fb462ada87412d3977f74cde96177147eb9006b1db21ea"
    assert hashlib.sha256(packed.read_bytes()).hexdigest() == specified


MEASURED = """benchmark,class,nodes,processes,time_s,mops_total
CG,C,1,16,89.83,1
CG,C,1,4,1450.11,2
CG,C,2,8,130.74,3
CG,C,16,32,95.5,4
EP,D,,4,80,5
EP,D,,8,40,6
EP,F,,4,90,7
EP,F,,8,50,8
EP,F,,32,20,9
IS,D,,4,70,10
"""
"""Unordered runs, one without gain, and applications with too few runs."""


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("generated", ["CG.C", "EP.F"]),
        pytest.param(
            "npb/npb-pi4-cluster.csv", ["CG.C", "EP.D", "EP.F", "FT.C", "LU.D", "MG.C"], marks=pytest.mark.others
        ),
    ],
)
def test_measured_runs_give_the_specified_tables(
    others: Callable[[str], Path], tmp_path: Path, source: str, names: list[str]
) -> None:
    (tmp_path / "measured.csv").write_text(MEASURED)
    tables = read_profiles(tmp_path / "measured.csv" if source == "generated" else others(source), least_rows=3)
    assert sorted(tables) == names
    assert [row.tolist() for row in tables["CG.C"].points] == [[4, 8, 16], [1450.11, 130.74, 89.83]]


@pytest.fixture
def two(tmp_path: Path) -> Path:
    path = tmp_path / "two.csv"
    path.write_text("application,cores,seconds\nsmall,2,10\nsmall,8,4\nlarge,8,90\nlarge,64,20\nlarge,32,30\n")
    return path


def test_an_application_is_drawn_among_those_that_span_the_request(two: Path) -> None:
    log = many([1, 4, 8, 20] * 100, 128)
    made = ranges(Profiles(str(two)).apply(log, rng()))
    drawn = [Counter(made.curve[place::4].tolist()) for place in range(4)]
    assert (drawn[0], drawn[1], drawn[3]) == ({2: 100}, {0: 100}, {1: 100})
    assert set(drawn[2]) == {0, 1}
    assert 30 <= drawn[2][0] <= 70


def test_a_request_that_no_application_spans_draws_among_all_and_stretches_the_range(two: Path) -> None:
    log = many([100] * 100, 128)
    made = ranges(Profiles(str(two)).apply(log, rng()))
    assert set(zip(made.minimum.tolist(), made.maximum.tolist(), strict=True)) == {(2, 8), (8, 64)}


def test_there_is_one_draw_a_job_so_that_other_widths_do_not_move_it(two: Path) -> None:
    widths = np.array([8] * 50 + [1] * 50)
    one, other = (
        ranges(Profiles(str(two)).apply(many(cores, 8), rng())).curve[:50] for cores in (widths, np.full(100, 8))
    )
    assert one.tolist() == other.tolist()


def test_a_job_keeps_its_runtime_on_its_cores_or_takes_that_of_the_application(two: Path) -> None:
    log = Workload.from_columns(submit=[0, 0], runtime=[100, 50], estimate=[200, 50], cores=[2, 1], cores_stated=8)
    kept = Profiles(str(two)).apply(log, rng())
    assert kept.runtime.tolist() == log.runtime.tolist()
    assert (ranges(kept).times_on([8, 1], kept.runtime, kept.cores) / 1e6).tolist() == [40, 50]
    own = Profiles(str(two), absolute=True).apply(log, rng())
    assert (own.runtime / 1e6).tolist() == [10, 50]
    assert (own.estimate / 1e6).tolist() == [20, 50]
    assert (ranges(own).times_on([8, 1], own.runtime, own.cores) / 1e6).tolist() == [4, 50]


def test_drawn_values_are_reported(two: Path) -> None:
    entry = Profiles(str(two)).apply(LOG, rng()).provenance["transforms"][0]
    assert json.loads(json.dumps(entry)) == entry
    assert sum(entry["applications"].values()) == 3


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a,b\n1,2\n", "line 1: has columns a, b; expected application, cores, seconds or benchmark, class"),
        ("", "line 1: has columns none"),
        ("application,cores,seconds\n", "contains no application$"),
        ("application,cores,seconds\nx,4,10\n", "field 'rows': x: a table of 1 row"),
        ("application,cores,seconds\nx,4,10\nx,8,-2\n", "line 3, field 'seconds': has '-2'; expected seconds above 0"),
        ("application,cores,seconds\nx,4,10\nx,8,nan\n", "line 3, field 'seconds': has 'nan'"),
        ("application,cores,seconds\nx,4.5,10\n", "line 2, field 'cores': has '4.5'; expected a whole number from 1"),
        ("application,cores,seconds\nx,0,10\n", "line 2, field 'cores': has '0'"),
        ("application,cores,seconds\nx,4\n", "line 2, field 'seconds': has ''"),
    ],
)
def test_files_that_hold_no_profiles_are_refused(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "profiles.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=told):
        read_profiles(path)


def test_a_file_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none.csv: cannot be read: No such file"):
        read_profiles(tmp_path / "none.csv")


def test_applications_with_few_rows_can_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "profiles.csv"
    path.write_text("application,cores,seconds\nx,4,10\ny,4,10\ny,8,12\nz,4,10\nz,8,5\n")
    assert list(read_profiles(path, least_rows=2)) == ["z"]
    with pytest.raises(InputError, match="contains no application with 3 or more rows that become faster"):
        read_profiles(path, least_rows=3)


# -- ranges of single jobs ---------------------------------------------------------------------------------------------


def single(tmp_path: Path, text: str) -> Ranges:
    path = tmp_path / "ranges.csv"
    path.write_text(text)
    return Ranges(str(path))


def test_jobs_of_a_file_get_its_ranges_and_all_others_stay_rigid(tmp_path: Path) -> None:
    text = "job,minimum,maximum,parallelism,sigma\n3,2,64,6,0\n1,4,32,,\n"
    made = ranges(single(tmp_path, text).apply(LOG))
    assert made.minimum.tolist() == [4, 1, 2, 128]
    assert made.maximum.tolist() == [32, 1, 6, 128]
    assert made.weight.tolist() == pytest.approx([float(Downey(32, 1).speedup(np.array([16]))[0]), 1, 6, 128])


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("1,8,4,,", "line 2, field 'maximum': the range 8 to 4; expected at least 1 core, and a maximum"),
        ("1,0,4,,", "line 2, field 'minimum': the range 0 to 4"),
        ("1,8,400,,", "line 2, field 'maximum': the range 8 to 400; expected at most the 128 cores of the machine"),
        ("1,8,12,,-1", "line 2, field 'sigma': a sigma of -1.0; expected 0"),
        ("1,8,12,0.2,", "line 2, field 'parallelism': an average parallelism of 0.2"),
        ("1,8,x,,", "line 2, field 'maximum': has 'x'; expected a number"),
        ("1,8", "line 2, field 'maximum': has ''; expected a number"),
        ("9,1,4,,", "line 2, field 'job': job 9 is not in the workload"),
        ("1,1,4,,\n1,1,5,,", "field 'job': gives job 1 two ranges"),
    ],
)
def test_a_line_that_makes_no_range_is_refused(line: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=told):
        single(tmp_path, f"job,minimum,maximum,parallelism,sigma\n{line}\n").apply(LOG)


def test_a_file_without_ranges_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="line 1: has columns a; expected job, minimum, maximum"):
        single(tmp_path, "a\n").apply(LOG)
    with pytest.raises(InputError, match="cannot be read"):
        Ranges(str(tmp_path / "none.csv")).apply(LOG)


# -- Cirne's model -----------------------------------------------------------------------------------------------------


def test_cirnes_quantities_have_the_specified_distributions() -> None:
    n, draws = 200_000, rng().spawn(4)
    smallest = smallest_sizes(draws[0].random(n))
    sigma = sigmas(draws[1].standard_normal(n))
    average = parallelisms(smallest, draws[2].random(n))
    named = named_counts(draws[3].random(n))
    assert (np.mean(smallest == 1), smallest.mean(), smallest.max()) == pytest.approx((0.629, 4.86, 42), rel=0.01)
    assert np.mean(sigma == 0) == pytest.approx(0.143, abs=0.003)
    assert (np.mean(sigma > 1), sigma.mean()) == pytest.approx((0.573, 1.288), rel=0.01)
    assert (np.median(average), np.mean(average <= 128)) == pytest.approx((75, 0.564), rel=0.02)
    assert (np.mean(named == 2), named.mean(), named.max()) == pytest.approx((0.380, 5.74, 19), rel=0.01)


def sizes_of(made: Moldable) -> list[list[int]]:
    assert made.size_first is not None
    assert made.sizes is not None
    return [made.sizes[one:other].tolist() for one, other in zip(made.size_first, made.size_first[1:], strict=False)]


@pytest.mark.parametrize("admissible", ["request", "nature"])
def test_cirnes_jobs_name_sizes_in_their_ranges(admissible: Any) -> None:
    cores = [1, 2, 3, 16, 31, 128] * 40
    log = many(cores, 128)
    workload = Cirne(admissible).apply(log, rng())
    workload.check()
    made = ranges(workload)
    for row, named in enumerate(sizes_of(made)):
        assert named == sorted(set(named))
        assert (named[0], named[-1]) == (made.minimum[row], made.maximum[row])
        assert cores[row] in named or cores[row] > made.maximum[row]
        if admissible == "request" and cores[row] in (2, 16, 128):
            assert all(size & (size - 1) == 0 for size in named)
        times = [int(made.times_on(size, log.runtime, log.cores)[row]) for size in named]
        assert times == sorted(times, reverse=True)
    assert len({len(named) for named in sizes_of(made)}) > 3


def test_natures_are_drawn_by_their_shares() -> None:
    drawn = Counter(Cirne("nature")._natures(np.ones(20_000, dtype=np.int64), rng().random(20_000)))
    assert {nature: count / 20_000 for nature, count in drawn.items()} == pytest.approx(NATURES, abs=0.01)


def test_cirnes_draws_replay() -> None:
    one, other = (ranges(Cirne().apply(LOG, rng())) for _ in range(2))
    assert sizes_of(one) == sizes_of(other)
    assert one.weight.tolist() == other.weight.tolist()


# -- conformance cases -------------------------------------------------------------------------------------------------

OF_KIND: dict[str, dict[str, Any]] = {
    "speedup": {"points": [{"n": 4, "A": 4, "sigma": 1, "speedup": 2.9090909091}]},
    "range": {"points": [{"platform": 128, "requested": 1, "rf": 1, "min": 1, "max": 1, "formula_max": 128}]},
    "profile": {
        "table": [[4, 100], [8, 55]],
        "points": [{"processors": 2, "seconds": 200}],
        "jobs": [
            {
                "requested": 8,
                "runtime": 1000,
                "min": 4,
                "max": 8,
                "weight": 7272.727273,
                "seconds": [{"processors": 4, "seconds": 1818.181818}],
            }
        ],
    },
    "table": {
        "bounds": [100, 300, 900, 2700, 8100, 24300, 72900, 218700, 656100],
        "points": [{"weight": 300, "category": 2}],
        "load": [{"lf": 150, "submit": [0, 100], "expected": [0, 66.666667]}],
    },
}
WRONG = {
    "speedup": {"points": [{"n": 4, "A": 4, "sigma": 1, "speedup": 2.909}]},
    "range": {"points": [{"platform": 128, "requested": 2, "rf": 2, "min": 1}]},
    "profile": {"points": [{"processors": 2, "seconds": 201}]},
    "table": {"points": [{"weight": 300, "category": 3}]},
}


def case(kind: str, **changed: Any) -> dict[str, Any]:
    return {"kind": kind, "tolerance": 1e-6, **OF_KIND[kind], **changed}


@pytest.mark.parametrize("kind", OF_KIND)
def test_a_conformance_case_passes_only_with_the_right_numbers(kind: str) -> None:
    assert (check(case(kind)).status, check(case(kind)).messages) == ("passed", ())
    assert check(case(kind, **WRONG[kind])).status == "failed"
    assert check(case(kind, more=1)).status == "unsupported"


def test_other_bounds_of_categories_fail() -> None:
    assert check(case("table", bounds=[100, 200])).status == "failed"


@pytest.mark.parametrize(
    "name", ["m01-downey-speedup", "m02-range-factor", "m18-scalability-profile", "m19-categories-and-load"]
)
def test_specified_cases_without_a_schedule_pass(name: str) -> None:
    outcome = check(json.loads((CASES / "moldable" / f"{name}.json").read_text()))
    assert (outcome.status, outcome.messages) == ("passed", ())
