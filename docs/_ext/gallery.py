"""A directive that collects the pictures of all pages, each with a link to the section that explains it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

_FIGURE = re.compile(r'<figure class="gantt">.*?</figure>', re.DOTALL)


class Gallery(nodes.General, nodes.Element):
    """Place of the pictures, which are known when all pages have been read."""


class GalleryDirective(Directive):
    """``{gallery} background/algorithms …``: the pictures of these pages and of the pages in their toctrees."""

    final_argument_whitespace = True
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        return [Gallery(pages=self.arguments[0].split())]


def _below(env: BuildEnvironment, page: str) -> Iterator[str]:
    """A page and the pages in its toctrees, in their order."""
    yield page
    for child in env.toctree_includes.get(page, []):
        yield from _below(env, child)


def _pictures(section: nodes.Node) -> list[nodes.Node]:
    """Pictures of a section without those of its subsections."""
    found: list[nodes.Node] = []
    for child in section.children:
        if isinstance(child, nodes.section):
            continue
        for node in child.findall():
            if isinstance(node, nodes.raw):
                found += [nodes.raw("", text, format="html") for text in _FIGURE.findall(node.astext())]
            elif isinstance(node, nodes.image):
                found.append(nodes.container("", node.deepcopy(), nodes.paragraph("", node.get("alt", ""))))
    return found


def _collected(app: Sphinx, page: str, origin: str) -> Iterator[nodes.Node]:
    """A link to each section of a page that has pictures, and the pictures."""
    title = app.env.titles[page].astext()
    for section in app.env.get_doctree(page).findall(nodes.section):
        if pictures := _pictures(section):
            name = section.next_node(nodes.title).astext()
            address = f"{app.builder.get_relative_uri(origin, page)}#{section['ids'][0]}"
            link = nodes.reference("", name if name == title else f"{title}: {name}", refuri=address, internal=True)
            yield nodes.rubric("", "", link)
            yield nodes.container("", *pictures, classes=["gallery"])


def resolve(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Put the pictures in their place."""
    for place in list(doctree.findall(Gallery)):
        pages = [each for root in place["pages"] for each in _below(app.env, root)]
        place.replace_self([node for each in pages for node in _collected(app, each, page)])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_node(Gallery)
    app.add_directive("gallery", GalleryDirective)
    app.connect("doctree-resolved", resolve)
    app.connect("env-updated", lambda app, env: [page for page in env.found_docs if page == "gallery"])
    return {"parallel_read_safe": True}
