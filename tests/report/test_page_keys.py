"""The page without a mouse, in a real browser: every control is visible and reached by Tab, and keys explain a job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gridsim.model.platform import Platform
from gridsim.questions.changes import changes_of
from gridsim.questions.whatif import whatif
from gridsim.report.comparison import Comparison
from gridsim.report.whatif_page import render
from gridsim.workload.synthetic.lublin import default_workload

pytestmark = pytest.mark.long

TAB, ENTER = "\ue004", "\ue007"
FOCUSED = """
    const it = document.activeElement, style = getComputedStyle(it);
    const name = it.getAttribute("aria-label") || it.getAttribute("name") || it.textContent.trim().slice(0, 40);
    return [it.tagName.toLowerCase(), name, style.outlineStyle, parseFloat(style.outlineWidth), it.id];
"""


@pytest.fixture(scope="module")
def opened(
    browser: Any, visit: Callable[..., Any], comparison: Comparison, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    folder = tmp_path_factory.mktemp("keys")
    comparison.write(folder)
    return visit(browser, comparison.page(folder / "report.html").as_uri())


def walk(browser: Any, most: int = 120) -> list[list[Any]]:
    """Focused elements after each Tab, until the focus leaves the page."""
    webdriver = pytest.importorskip("selenium.webdriver")
    browser.execute_script("document.activeElement.blur(); window.getSelection().removeAllRanges(); scrollTo(0, 0)")
    seen: list[list[Any]] = []
    for _ in range(most):
        webdriver.ActionChains(browser).send_keys(TAB).perform()
        found = browser.execute_script(FOCUSED)
        if found[0] == "body":
            break
        seen.append(found)
    return seen


def test_every_control_is_reached_by_tab_and_shows_the_focus(opened: Any) -> None:
    controls = opened.execute_script("""
        const can = "a[href], button, input, select, canvas[tabindex], summary, [role=region][tabindex]";
        const closed = (it) => { const d = it.closest("details"); return d && !d.open && it.tagName !== "SUMMARY"; };
        return [...document.querySelectorAll(can)].filter((it) => it.offsetParent !== null && !closed(it)).length;
    """)
    seen = walk(opened)
    assert len(seen) == controls
    assert seen[0][1] == "Skip to the results"
    assert all(style != "none" and width >= 1 for _, _, style, width, _ in seen), seen
    assert {"select", "input", "button", "canvas", "a", "div", "summary"} <= {tag for tag, *_ in seen}


def test_the_skip_link_is_unseen_until_it_is_reached_and_leads_to_the_answer(opened: Any) -> None:
    webdriver = pytest.importorskip("selenium.webdriver")
    opened.refresh()
    top = "return document.querySelector('.skip').getBoundingClientRect().top"
    assert opened.execute_script(top) < -20
    webdriver.ActionChains(opened).send_keys(TAB).perform()
    assert opened.execute_script(top) >= 0
    webdriver.ActionChains(opened).send_keys(ENTER).perform()
    assert opened.execute_script(FOCUSED)[4] == "answer"


def test_a_job_is_explained_by_keys_alone(opened: Any) -> None:
    box = opened.find_element("css selector", "#why input[name=wanted]")
    box.send_keys("17" + ENTER)
    assert opened.find_element("css selector", "#why .explanation").text.startswith("Job 17 ")
    caption = opened.execute_script("return document.querySelector('#why .pinned caption').textContent")
    assert caption == "Job 17 under each policy"


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_window(opened: Any, width: int) -> None:
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    assert opened.execute_script("const it = document.documentElement; return it.scrollWidth - it.clientWidth") == 0
    opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_page_of_whatif_needs_no_script_and_fits_a_phone(browser: Any, tmp_path: Path) -> None:
    log = default_workload(jobs=150, load=0.9, cores=32, seed=1)
    here = Platform.single(32)
    found = whatif(log, changes_of(log, here, cores=[0.5]), platform=here)
    path = tmp_path / "whatif.html"
    path.write_text(render(found, title="made", command="gridsim whatif"), encoding="utf-8")
    size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get_log("browser")
    browser.get(path.as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth") == 390
    assert browser.get_log("browser") == []
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
