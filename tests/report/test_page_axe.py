"""Accessibility of the page in a browser: axe-core finds no violation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gridsim.report.comparison import Comparison


@pytest.fixture(scope="module")
def address(comparison: Comparison, tmp_path_factory: pytest.TempPathFactory) -> str:
    return comparison.page(tmp_path_factory.mktemp("page") / "report.html").as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_no_violation_on_the_page(
    browser: Any,
    axe: Callable[[Any], list[str]],
    visit: Callable[[Any, str], Any],
    address: str,
    width: int,
    scheme: str,
) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme_of = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme_of)
    assert axe(visit(browser, address)) == []


def test_axe_finds_a_picture_without_a_text(browser: Any, axe: Callable[[Any], list[str]], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<!doctype html><html lang=en><title>t</title><main><h1>t</h1><img src=a.png></main>", "utf-8")
    browser.get(page.as_uri())
    assert [one.partition(":")[0] for one in axe(browser)] == ["image-alt"]
