"""Write the result pages of the documentation from an output folder of `gridsim reproduce`.

Each page has the runs of one paper, the verdict on each claim, and the figures. Explanations of claims that do not hold
are hand-written in ``notes/NAME.md`` and are the first section.
"""

from __future__ import annotations

import argparse
import io
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from PIL import Image

from gridsim.files import write_atomically, write_text

NOTES = Path(__file__).with_name("notes")
COLOURS = 48
HEADINGS = {
    "grid": "P-SLR on a grid (FGCS 2013)",
    "qops-report": "QoPS, the technical report (2003)",
    "qops": "QoPS (JSSPP 2003)",
    "service": "Service guarantees (CLUSTER 2004)",
    "moldable": "Moldable jobs (CLUSTER 2003)",
}
ANSWERS = {
    "holds": ("holds", "hold"),
    "holds partly": ("holds partly", "hold partly"),
    "not shown": ("is not shown", "are not shown"),
    "does not hold": ("does not hold", "do not hold"),
    "not testable": ("is not testable", "are not testable"),
}
"""Verdicts of one claim, and of several."""


def page_of(told: dict[str, Any], verdicts: str, facts: str) -> str:
    """The page of one paper."""
    name = told["name"]
    variant = f", variant {told['variant']}" if told["variant"] else ""
    counts = Counter({claim["id"]: claim["overall"] for claim in told["claims"]}.values())
    tally = ", ".join(
        f"{counts[answer]} {forms[counts[answer] != 1]}" for answer, forms in ANSWERS.items() if counts[answer]
    )
    tally = re.sub(r"^(1|\d+) ", lambda found: f"{found[0]}claim{'s' * (found[1] != '1')} ", tally)
    versions = ", ".join(f"{package} {version}" for package, version in told["versions"].items())
    notes = NOTES / f"{name}.md"
    parts = [
        f"# {HEADINGS[told['paper']]}{variant}",
        f"{told['authors']}: *{told['title']}*, {told['where']}.",
        f"**{tally}.** Scale {told['scale']}; {facts} Versions: {versions}."
        + (" **Synthetic jobs replace logs.**" if told["synthetic"] else ""),
        notes.read_text(encoding="utf-8").strip() if notes.exists() else "",
        "## Verdicts",
        "*Effect*: the part of the claim with the least support. *p*: one-sided p value of the test that decides this "
        "part, Holm-corrected over all parts of the claim, but uncorrected if the claim holds. *n*: number of windows, "
        "workloads or other counted items. The [rule of the verdicts](../howto/reproduce.md#what-a-verdict-says) is "
        "the same for all claims.",
        verdicts.strip(),
        "## Figures",
    ]
    for figure in told["figures"]:
        if figure["file"]:
            parts.append(f"![{_plain(figure['caption'])}]({figure['file']})")
        else:
            parts.append(f"{figure['caption']}: {figure['note']}.")
    return "\n\n".join(part for part in parts if part) + "\n"


def _plain(text: str) -> str:
    return re.sub(r"[\[\]]", "", text)


def copy_figure(source: Path, target: Path) -> None:
    """Reduce a figure to few colours, which takes a fifth of the bytes."""
    with Image.open(source) as image:
        small = image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
        content = io.BytesIO()
        small.save(content, "PNG", optimize=True)
    write_atomically(target, lambda place: place.write_bytes(content.getvalue()) and None)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reproduction", type=Path, help="folder of gridsim reproduce")
    parser.add_argument("docs", type=Path, help="folder of the pages, such as docs/results")
    parser.add_argument("name", nargs="+", help="names of the papers' files, such as grid")
    parser.add_argument("--facts", default="", help="a sentence with date, commit, machine and run time")
    args = parser.parse_args()
    for name in args.name:
        told = json.loads((args.reproduction / f"{name}.json").read_text(encoding="utf-8"))
        verdicts = (args.reproduction / "tables" / f"{name}-verdicts.md").read_text(encoding="utf-8")
        write_text(args.docs / f"{name}.md", page_of(told, verdicts, args.facts))
        for figure in told["figures"]:
            if figure["file"]:
                copy_figure(args.reproduction / figure["file"], args.docs / figure["file"])


if __name__ == "__main__":
    main()
