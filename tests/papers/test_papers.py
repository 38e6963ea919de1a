"""The five papers: their figures, the campaigns of each, and the replacements of missing data."""

from __future__ import annotations

from pathlib import Path

import pytest

from gridsim.campaign.paper import Order
from gridsim.errors import InputError, UnknownNameError
from gridsim_papers.deadline.campaign import DeadlineCampaign
from gridsim_papers.grid.campaign import GridCampaign
from gridsim_papers.grid.industrial import LOG
from gridsim_papers.paper import MODEL, Plan
from gridsim_papers.papers import PAPERS
from gridsim_papers.windows import LOGS

FIGURES = {"grid": 15, "qops-report": 60, "qops": 17, "service": 11, "moldable": 14}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with empty files at the paths of the logs."""
    for log in LOGS.values():
        if log.file:
            (tmp_path / log.file).touch()
    (tmp_path / LOG.parent).mkdir()
    (tmp_path / LOG).touch()
    return tmp_path


def campaign(plan: Plan) -> DeadlineCampaign:
    (part,) = plan.parts
    assert isinstance(part.campaign, DeadlineCampaign)
    return part.campaign


def test_five_papers_have_their_figures_and_a_ledger() -> None:
    assert {name: len(paper.pictures) for name, paper in PAPERS.items()} == FIGURES
    assert {name: len(paper.ledger) for name, paper in PAPERS.items()} == {
        "grid": 83,
        "qops-report": 81,
        "qops": 17,
        "service": 22,
        "moldable": 57,
    }


def test_unknown_values_are_named() -> None:
    with pytest.raises(UnknownNameError, match=r"figure of moldable '15'.*14"):
        PAPERS["moldable"].asked("15")
    with pytest.raises(UnknownNameError, match=r"scale 'smal'.*small"):
        PAPERS["grid"].family.plan(PAPERS["grid"], Order("smal"))
    with pytest.raises(UnknownNameError, match="loguniform"):
        PAPERS["grid"].family.plan(PAPERS["grid"], Order("tiny", variant="log"))


def test_a_number_names_a_figure_or_its_parts() -> None:
    grid = PAPERS["grid"]
    assert [one.number for one in grid.asked("13")] == ["13a", "13b", "13c"]
    assert [one.number for one in grid.asked("7")] == ["7"]
    assert [one.number for one in PAPERS["qops-report"].asked("C23")] == ["C23"]
    assert PAPERS["qops"].asked("1")[0].cases == "05 06 07 10 13 15 16"


def test_captions_say_what_was_run() -> None:
    assert PAPERS["qops-report"].pictures["17"].title == (
        "Rejected deadline jobs: SDSC SP2, load by duplicates that arrive at random, stringency 0.2, 80 % of the "
        "jobs have deadlines"
    )
    assert PAPERS["moldable"].pictures["12"].title.endswith("SDSC SP2, load factor 100 %")


def test_papers_of_one_campaign_run_their_own_experiments(data: Path) -> None:
    report, extract, service = (
        campaign(PAPERS[name].family.plan(PAPERS[name], Order("full", data)))
        for name in ("qops-report", "qops", "service")
    )
    assert report == extract
    assert report.logs == ("ctc", "sdsc")
    assert service.logs == ("ctc",)
    names = [set(it.experiments_on("ctc")) for it in (report, service)]
    assert names[0] | names[1] == set(DeadlineCampaign().experiments_on("ctc"))
    assert not names[0] & names[1]
    assert names[1] == {"categories", "T-fixed", "T-random", "S", "K", "K-mixed"}


@pytest.mark.long
@pytest.mark.parametrize("paper", ["qops-report", "service", "moldable"])
def test_small_and_tiny_have_what_every_figure_shows(paper: str, data: Path) -> None:
    for scale in ("tiny", "small"):
        for order in (Order(scale), Order(scale, data)):
            plan = PAPERS[paper].family.plan(PAPERS[paper], order)
            there = plan.parts[0].campaign
            for picture in PAPERS[paper].pictures.values():
                alone = PAPERS[paper].family.plan(PAPERS[paper], order, [picture])
                if not picture.cases and paper != "moldable":
                    wanted = {name for log in there.logs for name in there.experiments_on(log)}
                    assert set(alone.parts[0].campaign.experiments) <= wanted


def test_a_figure_runs_only_what_it_needs(data: Path) -> None:
    report = PAPERS["qops-report"]
    plan = report.family.plan(report, Order("small", data), report.asked("4"))
    assert campaign(plan).experiments == ("A-ctc-dup",)
    assert {unit.log for unit in campaign(plan).units()} == {"ctc"}
    assert report.family.plan(report, Order("small", data), report.asked("1")).parts == []
    grid = PAPERS["grid"]
    (part,) = grid.family.plan(grid, Order("tiny"), grid.asked("7")).parts
    assert isinstance(part.campaign, GridCampaign)
    assert part.campaign.loads == (1.2,)
    assert grid.family.plan(grid, Order("tiny"), grid.asked("3")).parts == []
    moldable = PAPERS["moldable"]
    (part,) = moldable.family.plan(moldable, Order("tiny", data), moldable.asked("1")).parts
    assert (part.campaign.experiments, part.campaign.logs) == (("mold-fig01",), ("ctc",))


def test_the_model_replaces_each_missing_log(data: Path) -> None:
    report = PAPERS["qops-report"]
    (data / LOGS["sdsc"].file).unlink()
    plan = report.family.plan(report, Order("small", data))
    assert campaign(plan).logs == ("ctc", MODEL)
    assert plan.stand_ins == {"sdsc": "SDSC SP2"}
    assert [(one.name, one.fetch) for one in plan.absent] == [("SDSC SP2", "sdsc")]
    neither = report.family.plan(report, Order("small"))
    assert campaign(neither).logs == (MODEL,)
    assert neither.synthetic == "CTC SP2 and SDSC SP2"


def test_claims_are_marked_by_the_log_that_is_not_there(data: Path) -> None:
    (data / LOGS["sdsc"].file).unlink()
    report, grid = PAPERS["qops-report"], PAPERS["grid"]
    plan = report.family.plan(report, Order("small", data))
    marks = {
        name: report.family.synthetic(report.ledger[name], plan) for name in ("TR-F04", "TR-F07", "TR-C12", "TR-F01")
    }
    assert marks == {"TR-F04": "", "TR-F07": "SDSC SP2", "TR-C12": "SDSC SP2", "TR-F01": ""}
    plan = grid.family.plan(grid, Order("tiny"))
    assert grid.family.synthetic(grid.ledger["G-90"], plan) == "the industrial log"
    assert grid.family.synthetic(grid.ledger["G-21"], plan) == ""


def test_small_and_full_of_the_grid_share_a_store_and_variants_have_their_own() -> None:
    grid = PAPERS["grid"]

    def stores(**order: str) -> list[str]:
        return [part.store for part in grid.family.plan(grid, Order(**order)).parts]

    assert stores(scale="small")[0] == stores(scale="full")[0] == "grid"
    assert stores(scale="tiny")[0] == "grid-tiny"
    assert stores(scale="small", variant="loguniform") == ["grid-loguniform"]
    assert stores(scale="small", variant="redraw")[0] == "grid-redraw"


def test_variants_change_the_campaign() -> None:
    grid, service = PAPERS["grid"], PAPERS["service"]
    twin = grid.family.plan(grid, Order("tiny", variant="loguniform")).parts[0].campaign
    redraw = [part.campaign for part in grid.family.plan(grid, Order("tiny", variant="redraw")).parts]
    assert twin.sizes == "loguniform"
    assert [it.random_hold for it in redraw] == [False, False]
    assert service.family.plan(service, Order("tiny", variant="ctc-338")).parts[0].campaign.ctc_cores == 338
    with pytest.raises(InputError, match="ctc-338"):
        service.family.plan(service, Order("tiny", variant="redraw"))
