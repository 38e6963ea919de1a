"""Links from source pages to the documentation: ``viewcode`` assumes one documented name for each module."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

_BACK = re.compile(r'(<a class="viewcode-back" href="(?:\.\./)*([^"#]+)\.html)#([^"]+)"')


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("html-page-context", correct)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def correct(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Replace anchors that do not exist by that of the same object, or remove them."""
    if not page.startswith("_modules/"):
        return
    objects = app.env.domaindata["py"]["objects"]

    def anchored(link: re.Match[str]) -> str:
        start, document, name = link.groups()
        here = {entry.node_id for entry in objects.values() if entry.docname == document}
        if name not in here:
            name = next((each for each in sorted(here) if each.endswith(f".{name.rpartition('.')[2]}")), "")
        return f'{start}#{name}"' if name else f'{start}"'

    context["body"] = _BACK.sub(anchored, context["body"])
