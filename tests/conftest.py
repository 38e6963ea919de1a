"""Fixtures shared by several test directories, the number of Hypothesis examples, and the order of test files.

CI searches for counterexamples in a separate job with more examples (``GRIDSIM_HYPOTHESIS=search``). Both draw the same
examples each time, so that results are reproducible; ``thorough`` draws many, with different ones each time.
"""

from __future__ import annotations

import gc
import os
import shutil
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

_quiet = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "print_blob": True}
settings.register_profile("usual", max_examples=12, derandomize=True, **_quiet)
settings.register_profile("search", max_examples=36, derandomize=True, **_quiet)
settings.register_profile("thorough", max_examples=3000, **_quiet)
settings.load_profile(os.environ.get("GRIDSIM_HYPOTHESIS", "usual"))

ROOT = Path(__file__).resolve().parent.parent


LONGEST = (ROOT / "tests" / "longest.txt").read_text().split()


_without_parquet = pytest.mark.skipif(find_spec("duckdb") is None, reason="the extra parquet is not installed")


def _results() -> int:
    """When the user's own results were last replaced; 0 if there are none."""
    folder = ROOT / "gridsim-results"
    return folder.stat().st_mtime_ns if folder.exists() else 0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Check that a test does not change the user's results in the checkout."""
    before = _results()
    outcome = yield
    assert _results() == before, "a test wrote to the checkout's gridsim-results: give it --out or another folder"
    return outcome


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collected tests stay until the end; repeated searches of them for reference cycles took half of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # packages that count their remaining objects at the end find none


@pytest.hookimpl(tryfirst=True)  # before unselected tests are removed
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest files first, so that they do not run alone in one process at the end.

    Most cases of a test that is marked ``sampled`` are long; those marked ``parquet`` are skipped without that extra.
    """
    seen: Counter[str] = Counter()
    for item in items:
        if (mark := item.get_closest_marker("sampled")) is not None:
            test = item.nodeid.partition("[")[0]
            if seen[test] % mark.args[0]:
                item.add_marker(pytest.mark.long)
            seen[test] += 1
        if item.get_closest_marker("parquet") is not None:
            item.add_marker(_without_parquet)
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.nodeid.partition("::")[0], len(LONGEST)))


def shared_folder() -> Path:
    """Folder of third-party data next to the project; may not exist."""
    return Path(os.environ.get("GRIDSIM_SHARED", ROOT.parent / "shared"))


@pytest.fixture
def others(request: pytest.FixtureRequest) -> Callable[[str], Path]:
    """Path of a third-party data file; a case that uses one is marked, and skipped if the file is absent."""

    def path(name: str) -> Path:
        if request.node.get_closest_marker("others") is None:
            pytest.fail(f"{name} is other people's; the case of this test that reads it is to be marked 'others'")
        found = shared_folder() / "data" / name
        if not found.exists():
            pytest.skip(f"other people's data are not at {found}; set GRIDSIM_SHARED to the folder that holds data/")
        return found

    return path


@pytest.fixture(scope="session")
def run_a() -> Path:
    """Run A of a real Slurm, made for this project: its workload, its configuration, its schedule and its logs."""
    return ROOT / "tests" / "published" / "slurm-a"


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the rendering of figures, which takes 0.3 s each, but create the figures and their files."""
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda figure, place, **how: Path(place).touch())


@pytest.fixture(scope="module")
def browser(chromium: Any) -> Any:
    """Headless Chromium driven by selenium, in its initial state."""
    chromium.get("about:blank")
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    chromium.get_log("browser")
    return chromium


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One Chromium for all modules, because each start takes a second or two."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed; pip install selenium")
    binary = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("no Chromium with its chromedriver; apt install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for argument in (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-dev-shm-usage",
        f"--user-data-dir={tmp_path_factory.mktemp('chromium')}",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    browser.set_script_timeout(60)
    yield browser
    browser.quit()


@pytest.fixture(scope="session")
def axe() -> Callable[[Any], list[str]]:
    """Check the page that a browser shows with axe-core; the answer is each violation and the elements that have it."""
    package = find_spec("axe_playwright_python")
    if package is None or package.origin is None:
        pytest.skip("axe-core is not installed; pip install --no-deps axe-playwright-python")
    script = Path(package.origin).with_name("axe.min.js").read_text(encoding="utf-8")
    run = """
        const done = arguments[arguments.length - 1];
        axe.run().then(
            (found) => done(found.violations.map((it) => it.id + ": " + it.nodes.map((one) => one.html).join(" | "))),
            (error) => done([String(error)]),
        );
    """

    def violations(browser: Any) -> list[str]:
        browser.execute_script(script)
        return list(browser.execute_async_script(run))

    return violations
