"""Each page, light and dark, wide and narrow, and each kind of dialog, light and wide and dark and narrow: nothing
serious for those who cannot see it, no wider than the window, and it looks as somebody has accepted it."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass, field

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser import blocks, dialogs, looks
from tests.browser.conftest import COUNT_REQUESTS, PICTURES, picture, sign_in
from tests.browser.pages import OF_THE_PROVIDER, PAGES, visit
from tests.browser.recorded import Recorded, recorded
from tests.contract.native import described
from tests.local_stack.waiting import CLOCK

ACCEPT = os.environ.get("ACCEPT", "")
"""pictures: accept those of this run. answers: record the answers of the local stack anew first."""
SERIOUS = """async (options) => {
    const { violations } = await axe.run(document, { resultTypes: ["violations"], ...options });
    const serious = violations.filter((each) => ["serious", "critical"].includes(each.impact));
    return serious.map((each) => [each.id, each.nodes.slice(0, 3).map((node) => node.html.slice(0, 160))]);
}"""
TOO_WIDE = """() => Math.max(...[document.documentElement, ...document.querySelectorAll("dialog")]
    .map((each) => each.scrollWidth - each.clientWidth))"""
COLOURS = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}
"""Rules of axe that a colour scheme matters to: a dark page is the light one in other colours."""


@dataclass
class Looked:
    """Findings of all pages: serious breaches, widths, and grids by look."""

    serious: dict[str, list] = field(default_factory=dict)
    too_wide: dict[str, int] = field(default_factory=dict)
    grids: dict[str, dict[str, looks.Grid]] = field(default_factory=lambda: defaultdict(dict))
    unknown: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def answers(request):
    """The recorded answers; with ACCEPT=answers those of the running stack."""
    if ACCEPT != "answers":
        return recorded()
    demo = request.getfixturevalue("demo")
    return Recorded(CLOCK.now().replace(microsecond=0).isoformat(), demo.jobs | demo.others, recording=True)


@pytest.fixture(scope="module")
def looked(browser, stack, answers):
    """Goes through all pages once, in every form."""
    found = Looked()
    options = {"timezone_id": "Europe/Berlin", "locale": "en-GB", "base_url": stack.base_url, "bypass_csp": True}
    reader = browser.new_page()
    for tenant, pages in (("acme", PAGES), ("provider", OF_THE_PROVIDER)):
        page = browser.new_context(**options).new_page()
        page.add_init_script(COUNT_REQUESTS)
        answers.given_to(page, tenant)
        page.goto("/console/nowhere")
        sign_in(page, stack.file.provider if tenant == "provider" else stack.file.tenants[tenant])
        page.evaluate(Axe().axe_script)
        page.add_style_tag(content=blocks.as_style()).evaluate("each => { window.blocks = each.sheet; }")
        page.evaluate("() => document.fonts.load('12px Blocks').then(() => { blocks.disabled = true; })")
        for name, path in pages.items():
            visit(page, path.format(**answers.ids))
            _look(page, reader, name, found)
        for name, dialog in dialogs.DIALOGS.items() if tenant == "acme" else ():
            close = dialogs.opened(page, dialog, answers.ids)
            _look(page, reader, f"dialog-{name}", found, looks.OF_DIALOGS, whole=False)
            close()
        page.context.close()
    found.unknown = answers.unknown
    if answers.recording:
        answers.save()
    if ACCEPT:
        for look, grids in found.grids.items():
            looks.accept(look, grids)
    return found


def _look(page, reader, name, found, forms=looks.ALL, *, whole=True):
    for scheme, size in forms:
        looks.put_on(page, size, scheme)
        look = f"{scheme}-{size}"
        found.grids[look][name] = looks.pictures_of(page, reader, name, look, whole=whole)
        if serious := page.evaluate(SERIOUS, COLOURS if scheme == "dark" else {}):
            found.serious[f"{name} {look}"] = serious
        too_wide = page.evaluate(TOO_WIDE)
        if too_wide > 0:
            found.too_wide[f"{name} {size}"] = too_wide


def test_no_page_has_a_serious_accessibility_violation(looked):
    assert looked.serious == {}


def test_no_page_is_wider_than_its_window(looked):
    assert looked.too_wide == {}


@pytest.mark.parametrize("look", [f"{scheme}-{size}" for scheme in looks.SCHEMES for size in looks.SIZES])
def test_every_page_looks_like_its_accepted_picture(looked, look):
    assert looked.unknown == [], "these answers are not recorded: run `make accept-pictures ANSWERS=1`"
    accepted = looks.accepted(look)
    changed = {
        f"{name}: look at {PICTURES / f'{name}-{look}.png'}": why
        for name, grid in looked.grids[look].items()
        if (why := grid.differs_from(accepted[name]) if name in accepted else "it is new")
    }
    gone = accepted.keys() - looked.grids[look].keys()

    assert not changed, f"look at each picture, then run `make accept-pictures`: {changed}"
    assert not gone


def test_the_answers_used_for_the_pictures_match_the_api_description(looked, answers):
    for name, answer in answers.answers.items():
        _, method, path = name.split(" ", 3)[:3]
        if method == "GET" and answer["status"] == 200:
            where, _ = described.operation(method, path.partition("?")[0])
            pointer = f"{where}/responses/200/content/application~1json/schema"
            described.validate(pointer, answer["body"], method)


def test_the_sign_in_page_works_with_a_screen_reader(visitor):
    page = visitor().new_page()
    page.goto("/console")
    page.get_by_label("Client id").wait_for()
    picture(page, "sign-in-light")

    assert [each["id"] for each in Axe().run(page).response["violations"]] == []
