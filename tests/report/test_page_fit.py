"""No part of a page is cut off, hidden at the side or overwritten: with long names, many policies, and dates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gridsim.record import Record
from gridsim.report import figures
from gridsim.report.comparison import Comparison

pytestmark = pytest.mark.long

LONG = "slurm?conf={}.conf&assoc=assoc.cfg&qos=qos.txt&reservations=reservations.txt"
LABELS = {
    "variants": [
        LONG.format(name) for name in ("slurm", "wider", "default-timing", "no-preemption", "with-two-queues")
    ],
    "labels": ["today", "no preemption", "twice the weight of age"],
}


@pytest.fixture(scope="module", params=LABELS)
def address(
    request: pytest.FixtureRequest,
    making: Callable[..., dict[str, Record]],
    comparing: Callable[..., Comparison],
    tmp_path_factory: pytest.TempPathFactory,
) -> str:
    made = list(making(900, policies=3).values())
    workload = made[0].workload
    labels = {**workload.labels, "partition": np.arange(900) % 3, "qos": np.arange(900) % 2}
    workload = replace(
        workload,
        labels=labels,
        names={"partition": ("batch", "a partition with a long name", "gpu"), "qos": ("normal", "urgent")},
        provenance={"clock": {"origin": 1_774_652_400, "zone": "Europe/Berlin"}},
    )
    records = [replace(record, workload=workload, cores=13_312) for record in made]
    compared = comparing({label: records[k % 3] for k, label in enumerate(LABELS[request.param])})
    return compared.page(tmp_path_factory.mktemp("fit") / "page.html").as_uri()


def opened(browser: Any, visit: Callable[..., Any], address: str, width: int) -> Any:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    )
    return visit(browser, address)


OVER = """
    const found = [], shared = (low, high, from, to) => Math.min(high, to) - Math.max(low, from);
    for (const svg of document.querySelectorAll(".picture svg")) {
      const frame = svg.getBoundingClientRect();
      const texts = [...svg.querySelectorAll("text")].filter((it) => it.textContent.trim());
      const boxes = texts.map((it) => [it.textContent, it.getBoundingClientRect()]);
      const title = svg.closest("figure").querySelector("h3").textContent;
      boxes.forEach(([text, a], k) => {
        const aside = a.left < frame.left - 1 || a.right > frame.right + 1;
        if (aside || a.top < frame.top - 1 || a.bottom > frame.bottom + 1)
          found.push(`${title}: ${text} leaves the picture`);
        for (const [other, b] of boxes.slice(k + 1))
          if (shared(a.left, a.right, b.left, b.right) > 1 && shared(a.top, a.bottom, b.top, b.bottom) > 3)
            found.push(`${title}: ${text} over ${other}`);
      });
    }
    return found;
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("width", [1280, 390])
def test_no_text_of_a_figure_is_cut_off_or_over_another(
    browser: Any, visit: Callable[..., Any], address: str, width: int
) -> None:
    assert opened(browser, visit, address, width).execute_script(OVER) == []


def test_nothing_is_hidden_at_the_side(browser: Any, visit: Callable[..., Any], address: str) -> None:
    opened(browser, visit, address, 1280)
    browser.execute_script("for (const it of document.querySelectorAll('details')) it.open = true")
    wide = """return [...document.querySelectorAll("body, section, .scroll, figure, .canvas")]
        .filter((it) => it.scrollWidth > it.clientWidth + 1 && getComputedStyle(it).display !== "none")
        .map((it) => it.getAttribute("aria-label") || it.className || it.tagName)"""
    assert browser.execute_script(wide) == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 1280


def test_a_phone_scrolls_tables_and_not_the_page(browser: Any, visit: Callable[..., Any], address: str) -> None:
    opened(browser, visit, address, 390)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390


def test_a_phone_breaks_no_word_of_a_label(browser: Any, visit: Callable[..., Any], address: str) -> None:
    rows = opened(browser, visit, address, 390).execute_script(
        """
        const texts = [...document.querySelectorAll(".metrics thead th")].flatMap((it) => [...it.childNodes]);
        return texts.filter((it) => it.nodeType === Node.TEXT_NODE).flatMap((it) =>
          [...it.data.matchAll(/[a-z]+/g)].map((word) => {
            const range = document.createRange();
            range.setStart(it, word.index);
            range.setEnd(it, word.index + word[0].length);
            return [word[0], new Set([...range.getClientRects()].map((box) => box.top)).size];
          }));
        """
    )
    assert len(rows) > 6
    assert [word for word, lines in rows if lines > 1] == []


def test_cores_have_separators_everywhere(browser: Any, visit: Callable[..., Any], address: str) -> None:
    opened(browser, visit, address, 1280)
    assert "13312" not in browser.find_element("css selector", "main").text


def test_variants_are_distinguished_by_what_differs() -> None:
    short = figures.short_labels(LABELS["variants"])
    assert list(short.values())[:3] == ["conf=slurm.conf", "conf=wider.conf", "conf=default-timing.conf"]
    assert len(set(short.values())) == 5
    assert all(len(text) <= 24 for text in short.values())
    short = figures.short_labels(["slurm?conf=a", "slurm?conf=a&boot=2026-11-21T06:53:40", "slurm?qos=b"])
    assert len(set(short.values())) == 3
    assert all(text.strip("…") for text in short.values())
