"""Each page, light and dark, wide and narrow: a picture of it, and nothing serious for those who cannot see it."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.browser.conftest import picture
from tests.browser.pages import of_somebody

LOOKS = {
    "light": {"color_scheme": "light"},
    "dark-narrow": {"color_scheme": "dark", "viewport": {"width": 390, "height": 844}},
}


@pytest.mark.parametrize("look", LOOKS)
def test_every_page_can_be_seen_heard_and_looked_at(opened, demo, look):
    found = {}
    for name, page in of_somebody(opened, demo, **LOOKS[look]):
        picture(page, f"{name}-{look}")
        serious = [each for each in Axe().run(page).response["violations"] if each["impact"] in {"serious", "critical"}]
        found[name] = [(each["id"], [node["html"][:160] for node in each["nodes"]][:3]) for each in serious]
        too_wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert too_wide <= 0, f"{name} is {too_wide} px wider than the window"

    assert {name: each for name, each in found.items() if each} == {}


def test_the_sign_in_page_can_be_heard(visitor):
    page = visitor().new_page()
    page.goto("/console")
    page.get_by_label("Client id").wait_for()
    picture(page, "sign-in-light")

    assert [each["id"] for each in Axe().run(page).response["violations"]] == []
