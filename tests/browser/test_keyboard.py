"""Every page by the keyboard alone: each control is reached and seen, each dialog opens, holds the focus and gives it
back, and nothing is a trap."""

from __future__ import annotations

import pytest

from tests.browser.pages import OF_THE_PROVIDER, PAGES, of_somebody
from tests.local_stack.waiting import until

WATCH = """() => {
    const tabbable = "a[href],button,input,select,textarea,summary,[tabindex='0']";
    window.controls = (within) => [...within.querySelectorAll(tabbable)].filter((each) => each.checkVisibility({
        visibilityProperty: true }) && !each.disabled && !each.closest("[inert]"));
    window.named = (each) => (each.ariaLabel || each.textContent.trim() || each.name || each.outerHTML).slice(0, 80);
    window.focused = [];
    window.unmarked = [];
    document.addEventListener("focusin", ({ target }) => {
        const { outlineStyle, outlineWidth } = getComputedStyle(target);
        const box = target.getBoundingClientRect();
        const inSight = box.width > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0;
        focused.push([target, inSight && outlineStyle !== "none" && parseFloat(outlineWidth) >= 1]);
    });
    const showModal = HTMLDialogElement.prototype.showModal;
    HTMLDialogElement.prototype.showModal = function () {
        if (!document.activeElement.matches("[aria-haspopup=dialog]")) unmarked.push(this.ariaLabel);
        return showModal.call(this);
    };
}"""
BEGIN = """within => {
    focused.length = 0;
    const all = controls(within);
    all[0].focus();
    const fieldsOfDates = all.filter((each) => each.type === "datetime-local");
    return all.length + 7 * fieldsOfDates.length;
}"""
MISSED = """within => ({
    missed: controls(within).filter((each) => !each.closest(".lanes") && !focused.some(([one]) => one === each))
        .map(named),
    unseen: focused.slice(1).filter(([each, seen]) => each.isConnected && !seen).map(([each]) => named(each)),
    outside: focused.filter(([each]) => each.isConnected && !within.contains(each)).map(([each]) => named(each)),
})"""
STOPS_APART = 3
"""Stops of a way around that are no control: the browser's own, and a dialog that can be scrolled."""
NOTHING = {"missed": [], "unseen": [], "outside": []}
OPENERS = """() => {
    const names = controls(document).filter((each) => each.matches("main [aria-haspopup=dialog]")).map(named);
    return [...new Set(names)];
}"""
OPENER = """name => {
    const openers = controls(document).filter((each) => each.matches("main [aria-haspopup=dialog]"));
    window.opener_ = openers.find((each) => named(each) === name);
    opener_.focus();
    return opener_.tagName;
}"""


def walked(page, within="document.documentElement"):
    """Presses Tab once around and returns what of the controls was missed, not seen to have the focus, or outside."""
    element = page.evaluate_handle(within)
    for _ in range(page.evaluate(BEGIN, element) + STOPS_APART):
        page.keyboard.press("Tab")
    return page.evaluate(MISSED, element)


def through_its_dialogs(page, known):
    """Opens each dialog by the keyboard, walks through it, and leaves it. Returns what went wrong. known: leave out."""
    wrong = {}
    for name in page.evaluate(OPENERS):
        if name in known:
            continue
        known.add(name)
        choice = page.evaluate(OPENER, name) == "SELECT"
        page.keyboard.press("ArrowDown" if choice else "Enter")
        page.wait_for_function("() => document.querySelector('dialog[open]')")
        page.wait_for_function("() => !document.querySelector('dialog').textContent.includes('Counting')")
        found = walked(page, "document.querySelector('dialog')")
        page.keyboard.press("Escape")
        page.wait_for_function("() => !document.querySelector('dialog')")
        back = page.evaluate("document.activeElement === opener_")
        if found != NOTHING or not back:
            wrong[name] = found | {"focus comes back": back}
    return wrong


def test_every_page_and_its_dialogs_work_by_keyboard(opened, demo):
    missed, dialogs, seen = {}, {}, []
    watched, known = set(), set()
    for name, page in of_somebody(opened, demo):
        if page not in watched:
            page.evaluate(WATCH)
            watched.add(page)
        seen.append(name)
        missed[name] = walked(page)
        dialogs[name] = through_its_dialogs(page, known)
        assert page.evaluate("unmarked") == [], "an opener of a dialog lacks aria-haspopup"

    assert len(known) > 20
    assert seen == [*PAGES, *OF_THE_PROVIDER]
    assert {name: each for name, each in missed.items() if each != NOTHING} == {}
    assert {name: each for name, each in dialogs.items() if each} == {}


def test_the_menu_of_more_pages_works_by_keyboard(opened, demo):
    page = opened("/jobs")
    page.get_by_text("More", exact=True).focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.wait_for_function("() => document.activeElement.textContent === 'Collections'")

    page.keyboard.press("Escape")

    page.wait_for_function("() => document.activeElement.matches('.menu:not([open]) > summary')")


@pytest.mark.parametrize(("moved", "focused"), [(False, ["H1", "Errors"]), (True, ["A", "Operations"])])
def test_a_page_that_loads_late_takes_the_focus_only_if_it_was_not_moved(opened, demo, moved, focused):
    page = opened("/jobs")
    held = []
    page.route("**/pages/errors.js", lambda route: held.append(route))  # noqa: PLW0108 - a method has no signature here
    page.get_by_role("link", name="Errors", exact=True).focus()
    page.keyboard.press("Enter")
    until(lambda: page.title() and held)
    if moved:
        page.keyboard.press("Tab")

    held[0].continue_()

    page.get_by_role("heading", name="Errors", exact=True).wait_for()
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    assert page.evaluate("() => [document.activeElement.tagName, document.activeElement.textContent]") == focused


def test_the_list_of_keys_opens_by_its_key_and_returns_the_focus(opened, demo):
    page = opened("/jobs")
    page.get_by_role("link", name="nightly").focus()
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keys").wait_for()

    page.keyboard.press("Escape")

    page.wait_for_function("() => document.activeElement.textContent === 'nightly'")
