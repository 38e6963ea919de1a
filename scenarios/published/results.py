"""Write the pages on results of the documentation, from a folder that `gridsim reproduce` filled.

A page a paper: what was run and when, the verdict on each claim, the figures. What was found out about claims that do
not hold is written by hand, in ``notes/NAME.md`` beside this file, and comes first. Rows stay where they are.
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
ANSWERS = ("holds", "holds partly", "not shown", "does not hold", "not testable")


def page_of(told: dict[str, Any], verdicts: str, facts: str) -> str:
    """The page of one paper."""
    name = told["name"]
    variant = f", variant {told['variant']}" if told["variant"] else ""
    counts = Counter({claim["id"]: claim["overall"] for claim in told["claims"]}.values())
    tally = ", ".join(f"{counts[answer]} {answer}" for answer in ANSWERS if counts[answer])
    versions = ", ".join(f"{package} {version}" for package, version in told["versions"].items())
    notes = NOTES / f"{name}.md"
    parts = [
        f"# {HEADINGS[told['paper']]}{variant}",
        f"{told['authors']}: *{told['title']}*, {told['where']}.",
        f"**{tally}.** Scale {told['scale']}; {facts} Versions: {versions}."
        + (" **Synthetic jobs stand in for logs.**" if told["synthetic"] else ""),
        notes.read_text(encoding="utf-8").strip() if notes.exists() else "",
        "## Verdicts",
        "*Effect*: of the part of the claim with the least support. *p*: one-sided, of the test that decides this "
        "part; corrected by Holm over all parts of the claim, but uncorrected where the claim holds. *n*: windows, "
        "workloads, or what was counted. The rule is the same for all claims: "
        "[what a verdict says](../howto/reproduce.md#what-a-verdict-says).",
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
    """The figure in few colours: a fifth of its bytes."""
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
    parser.add_argument("name", nargs="+", help="papers, with their variants, as their files are called: grid")
    parser.add_argument("--facts", default="", help="date, commit, machine and time taken, in a sentence")
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
