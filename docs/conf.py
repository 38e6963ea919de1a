"""Sphinx configuration: ``python -m sphinx -W -b html docs docs/_build/html``."""

from __future__ import annotations

import importlib.metadata
import shutil
import sys
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "gridsim"
author = "gridsim contributors"
release = importlib.metadata.version("gridsim-hpc")
language = "en-GB"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "generated",
    "gantt",
    "day",
    "dag",
    "curves",
    "backlinks",
    "gallery",
]
exclude_patterns = ["_build", "_templates", "examples"]
templates_path = ["_templates"]
default_role = "literal"

myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autosummary_context = {
    "members": {
        "gridsim.World": "now, timeout, submit, run, step, record, result",
        "gridsim.Result": "workload, metrics, jobs, tasks, killed_runs, allocations, to_pandas, figures, provenance, "
        "write",
        "gridsim.Comparison": "labels, baseline, difference, table, sentences, page, write, to_dict, to_pandas, "
        "figures",
        "gridsim.report.gallery.Gallery": "save",
        "gridsim.Quotation": "tightest, to_dict",
        "gridsim.Scenario": "from_toml, from_mapping, load, run, blocks, stream",
        "gridsim.Lublin": "generate, natural_load",
        "gridsim.Workload": "from_columns, from_tasks, select, area, offered_load, to_pandas",
        "gridsim.Demand": "total",
        "gridsim.Demands": "of, plain_cores, select, total, cores",
        "gridsim.Platform": "single, of_nodes, clusters, cores, widest",
        "gridsim.model.shares.ShareTree": "equal, path, fraction, entitlement",
        "gridsim.model.tasks.Tasks": "from_edges, from_graphs, graph, successors, roots, area",
        "gridsim.workload.synthetic.grid.Grid": "generate",
        "gridsim.metrics.schedule.Schedule": "from_tasks, from_record",
        "gridsim.workload.transform.deadlines.Deadlines": "apply",
        "gridsim.workload.synthetic.packed.Packed": "generate",
        "gridsim.model.moldable.Moldable": "of",
        "gridsim.model.speedup.Downey": "speedup",
        "gridsim.workload.transform.moldable.MoldableJobs": "apply",
        "gridsim.Record": "from_rows, ran, submit, start, end, held, wait, response, given, area, kills, lost, select",
        "gridsim.policy.protocols.Ordering": "rank",
        "gridsim.policy.protocols.ReservationRule": "lanes",
        "gridsim.policy.admission.plan.Admission": "plan",
        "gridsim.policy.admission.plan.Plan": "earliest, order, planned_starts, starts, running, copy, without, take, "
        "reserve, withdraw",
        "gridsim.policy.protocols.Partition": "limits",
        "gridsim.policy.queue.Queue": "cores, estimate, weight, area, submit, deadline, label",
    }
}
"""Documented methods and attributes of the classes that have some, for ``_templates/autosummary/class.rst``."""
napoleon_google_docstring = False
napoleon_custom_sections = [("Attributes", "params_style")]
napoleon_use_rtype = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80

html_theme = "furo"
html_title = "gridsim"
html_static_path = ["_static"]
html_css_files = ["gridsim.css"]
html_js_files = ["gridsim.js"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "a11y-light"
pygments_dark_style = "native"


def _remove_pages_of_classes(app: Sphinx) -> None:
    """Remove the generated pages, since a page of a class that was renamed would be a warning."""
    shutil.rmtree(Path(app.srcdir) / "reference" / "classes", ignore_errors=True)


def setup(app: Sphinx) -> None:
    """Remove generated pages before the project lists its files."""
    app.connect("config-inited", lambda app, config: _remove_pages_of_classes(app))
