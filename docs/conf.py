"""The site's configuration: `make site` builds these pages, and those of tools/docs/site_source.py, with Sphinx.

Three things are made here that no extension does: each page lies next to its HTML as Markdown, `llms.txt` lists all
pages for programs, and the sections of the navigation open and close. A link to a file outside of this folder becomes
the file's name, because the site does not hold it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sphinx import addnodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent

project = "Sweephand"
html_title = "Sweephand"
extensions = ["myst_parser", "sphinx_design", "sphinx_copybutton"]
exclude_patterns = ["_static"]
language = "en"

# Headings are linked by the anchors that code hosts make, down to the fourth level.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "deflist"]
highlight_language = "none"
copybutton_prompt_text = "$ "
copybutton_exclude = ".linenos, .go"

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(DOCS / "_static" / "search.js")
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
templates_path = ["_templates"]

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#|mailto:)([^)\s#]+)(#[^)\s]*)?\)")
FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)


def _within(page: Path, text: str) -> str:
    """Returns the Markdown of a page with links to files outside of the site as those files' names."""

    def link(found: re.Match[str]) -> str:
        image, label, target, _ = found.groups()
        file = (page.parent / target).resolve()
        if file.is_relative_to(DOCS) and file.is_file():
            return found[0]
        named = file.relative_to(ROOT).as_posix() if file.is_relative_to(ROOT) else target
        return found[0] if image else (label if named in label else f"{label} (`{named}`)")

    return "".join(part if part.startswith("```") else LINK.sub(link, part) for part in FENCE.split(text))


def _read(app: Sphinx, name: str, source: list[str]) -> None:
    source[0] = _within(Path(app.env.doc2path(name)), source[0])


def _summary(text: str) -> str:
    """Returns the first sentence below a page's title, without markup. Pages begin with what they are about."""
    body = re.sub(r"<!--.*?-->", "", FENCE.sub("", text), flags=re.DOTALL)
    blocks = [block.strip() for block in body.split("\n\n")]
    prose = next((block for block in blocks[1:] if re.match(r"[A-Z`*\[]", block)), "")
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(prose.split())).replace("**", "")
    return re.split(r"(?<=\.)\s", words, maxsplit=1)[0].rstrip(":")


def _index(app: Sphinx) -> str:
    """Returns llms.txt: every page in the order of the navigation, with its address as Markdown and its subject."""
    env = app.env
    lines = [f"# {project}", "", f"> {_summary((DOCS / 'index.md').read_text())}"]
    for tree in env.tocs["index"].findall(addnodes.toctree):
        lines += ["", f"## {tree['caption']}", ""]
        pages = [name for _, name in tree["entries"]]
        pages += [inner for name in pages for inner in env.toctree_includes.get(name, [])]
        for name in pages:
            text = Path(env.doc2path(name)).read_text()
            lines.append(f"- [{env.titles[name].astext()}]({name}.md): {_summary(text)}")
    return "\n".join(lines) + "\n"


def _finish(app: Sphinx, failed: Exception | None) -> None:
    """Writes each page as Markdown next to its HTML, with a link to `llms.txt`, and `llms.txt` itself."""
    if failed or app.builder.format != "html":
        return
    for name in app.env.found_docs:
        to = Path(app.outdir) / f"{name}.md"
        page = Path(app.env.doc2path(name))
        to.parent.mkdir(parents=True, exist_ok=True)
        index = f"{'../' * name.count('/')}llms.txt"
        to.write_text(f"> All pages are listed in [llms.txt]({index}).\n\n{_within(page, page.read_text())}")
    (Path(app.outdir) / "llms.txt").write_text(_index(app))


SECTION = re.compile(r'<p class="caption" role="heading">(.*?)</p>\n(<ul.*?)(?=<p class="caption"|\Z)', re.DOTALL)
PAGES_OF_DECISIONS = re.compile(r"(>Decisions</a>)<input.*?</ul>", re.DOTALL)


def _section(found: re.Match[str]) -> str:
    """Returns a section of the navigation that opens and closes. It is open on its own pages."""
    title, pages = found.groups()
    state = " open" if 'class="current' in pages else ""
    heading = f'<span class="caption" role="heading" aria-level="2">{title}</span>'
    return f'<details class="sidebar-section"{state}><summary>{heading}</summary>\n{pages.rstrip()}\n</details>\n'


def _navigation(tree: str, page: str) -> str:
    """Returns the navigation as sections that open and close, without each decision: their own page lists them."""
    sections = SECTION.sub(_section, PAGES_OF_DECISIONS.sub(r"\1", tree))
    return sections.replace("<details ", "<details open ", 1) if page == "index" else sections


def _accessible(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object) -> None:  # noqa: ARG001
    """Folds the navigation, and makes what scrolls sideways reachable by keyboard."""
    context["furo_navigation_tree"] = _navigation(context.get("furo_navigation_tree", ""), page)
    body = context.get("body", "").replace("<pre>", '<pre tabindex="0">')
    context["body"] = body.replace('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper')


def setup(app: Sphinx) -> None:
    # After the theme's own handler, which makes the navigation.
    app.connect("html-page-context", _accessible, priority=900)
    app.connect("source-read", _read)
    app.connect("build-finished", _finish)
