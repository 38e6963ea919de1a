"""Layout of a page with eight policies and a recorded log: the best policy, the opening of the chart, and print."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gridsim.record import Record
from gridsim.report.comparison import Comparison

pytestmark = pytest.mark.long

LABELS = ("fcfs", "modest", "easy?ordering=sjf", "easy?ordering=narrowest", "conservative", "no preemption", "wider")


@pytest.fixture(scope="module")
def compared(making: Callable[..., dict[str, Record]], comparing: Callable[..., Comparison]) -> Comparison:
    made = making(900, policies=3)
    workload = replace(next(iter(made.values())).workload, logged={"wait": np.full(900, 60.0)})
    records = {label: replace(record, workload=workload) for label, record in made.items()}
    others = {label: records["modest" if place % 2 else "fcfs"] for place, label in enumerate(LABELS)}
    return comparing({**others, "greedy": records["greedy"]})


@pytest.fixture(scope="module")
def address(compared: Comparison, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("layout")
    compared.write(folder)
    return compared.page(folder / "page.html").as_uri()


def opened(browser: Any, visit: Callable[..., Any], address: str, width: int, media: str = "") -> Any:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media})
    return visit(browser, address)


BEST = """
    const cell = [...document.querySelectorAll(".metrics thead th")].find((it) => it.textContent.trim() === "greedy");
    const row = document.querySelector(".metrics tbody tr").cells[cell.cellIndex];
    const title = document.querySelector(".metrics tbody th").getBoundingClientRect();
    return [cell, row].map((it) => it.getBoundingClientRect()).map((it) => [it.left - title.right, it.right]);
"""


@pytest.mark.parametrize(("width", "media"), [(1280, ""), (390, ""), (718, "print")])
def test_the_best_policy_is_visible(
    browser: Any, visit: Callable[..., Any], address: str, compared: Comparison, width: int, media: str
) -> None:
    assert compared.best == "greedy"
    for after_title, right in opened(browser, visit, address, width, media).execute_script(BEST):
        assert after_title >= -1
        assert right <= width


def test_the_chart_opens_at_one_day_and_shows_all_on_request(
    browser: Any, visit: Callable[..., Any], address: str
) -> None:
    opened(browser, visit, address, 1280)
    ticks = "const it = gridsimGantt.view(); return [(it.to - it.from) * gridsimGantt.data.tick, it.from, it.to]"
    span, *_ = browser.execute_script(ticks)
    assert span == pytest.approx(86_400, abs=5)
    browser.execute_script("document.querySelector('[name=all]').click()")
    assert browser.execute_script(ticks + ".concat(gridsimGantt.data.last)")[1:2] == [0]


def test_a_file_of_the_page_is_saved_as_plain_text(
    browser: Any, visit: Callable[..., Any], address: str, compared: Comparison
) -> None:
    opened(browser, visit, address, 1280)
    found = browser.execute_async_script("""
        const done = arguments[arguments.length - 1];
        URL.createObjectURL = (blob) => (blob.text().then(done), "blob:none");
        HTMLAnchorElement.prototype.click = function () { window.saved = this.download; };
        const link = document.querySelector("figcaption a");
        link.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
    """)
    assert found.startswith("metric,policy,value,share\n")
    assert browser.execute_script("return window.saved") == "distributions.csv"


def test_print_has_no_hints_for_the_screen(browser: Any, visit: Callable[..., Any], address: str) -> None:
    opened(browser, visit, address, 718, "print")
    text = browser.find_element("css selector", "body").text
    for hint in ("Wheel", "click", "Explain", "Skip to", ".csv.gz", "opens at"):
        assert hint not in text, hint
    assert not browser.execute_script(
        "return [...document.querySelectorAll('nav, .data')].some((it) => it.offsetHeight)"
    )
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 718


def test_the_page_can_be_printed(browser: Any, visit: Callable[..., Any], address: str) -> None:
    opened(browser, visit, address, 1280)
    found = browser.execute_cdp_cmd("Page.printToPDF", {"paperWidth": 8.27, "paperHeight": 11.69})
    assert base64.b64decode(found["data"]).startswith(b"%PDF")
