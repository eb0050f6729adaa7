"""Links of strangers, stacks of any name, and the commands that the console copies."""

from __future__ import annotations

import base64
import json
import shlex
import subprocess
from urllib.parse import quote

import pytest

from tests.browser.conftest import sign_in

HOSTILE = ["x$(touch pwned)", "x`touch pwned`", "x;touch pwned", "x\ntouch pwned", "x'\"; touch pwned #", "acme corp"]
KEEP_COPIES = "() => { navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }; }"


def renamed(token: str, stack_name: str) -> str:
    """Returns the token of a stack with another name, with a signature that no stack accepts."""
    head, claims, signature = token.split(".")
    read = json.loads(base64.urlsafe_b64decode(claims + "=="))
    packed = base64.urlsafe_b64encode(json.dumps({**read, "aud": stack_name}).encode()).decode().rstrip("=")
    return f"{head}.{packed}.{signature}"


@pytest.fixture
def elsewhere(visitor, stack):
    """elsewhere("/console", "acme"): a page of a stack that has another name, signed in."""

    def open_(path, tenant):
        page, tokens = visitor().new_page(), {}

        def issue(route):
            told = route.fetch().json()
            token = renamed(told["access_token"], "jobs-of-the-shop")
            tokens[f"Bearer {token}"] = f"Bearer {told['access_token']}"
            route.fulfill(json={**told, "access_token": token})

        def accept(route):
            headers = route.request.headers
            route.continue_(headers={**headers, "authorization": tokens[headers["authorization"]]})

        page.route("**/oauth/token", issue)
        page.route("**/v1/**", accept)
        page.goto(path)
        sign_in(page, stack.file.provider if tenant == "provider" else stack.file.tenants[tenant])
        page.locator("main h1").first.wait_for()
        return page

    return open_


def test_a_provider_begins_with_its_tenants_on_a_stack_of_any_name(elsewhere, demo):
    page = elsewhere("/console", "provider")

    page.get_by_role("heading", name="Tenants").wait_for()
    page.get_by_role("link", name="acme").first.wait_for()


def test_a_page_stays_with_its_tenant_on_a_stack_of_any_name(elsewhere, stack, demo):
    page = elsewhere("/console/jobs", "acme")
    page.unroute("**/v1/**")
    page.route("**/v1/**", lambda route: route.fulfill(status=401, json={"code": "UNAUTHENTICATED", "detail": "over"}))
    page.get_by_role("link", name="Runs").first.click()
    page.get_by_role("dialog", name="Sign in again").wait_for()

    page.get_by_label("Client id").fill(stack.file.tenants["globex"].client_id)
    page.get_by_label("Secret").fill(stack.file.tenants["globex"].secret)
    page.get_by_role("button", name="Sign in", exact=True).click()

    page.get_by_text("This page belongs to acme").wait_for()


def copied(page, tmp_path):
    """Copies the command of a run's page, and returns its words. Fails if a shell would do anything else with it."""
    page.evaluate(KEEP_COPIES)
    page.get_by_role("button", name="Copy as curl").click()
    page.get_by_text("Copied the command.").wait_for()
    command = page.evaluate("window.copied")
    run_by = f"curl() {{ printf '%s\\0' \"$@\"; }}; TOKEN=t; {command}"
    done = subprocess.run(["/bin/sh", "-c", run_by], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert list(tmp_path.iterdir()) == []
    words = done.stdout.split("\0")[:-1]
    assert [word.replace("$TOKEN", "t") for word in shlex.split(command)[1:]] == words
    return words


@pytest.mark.parametrize("named", ["globex", *HOSTILE])
def test_the_tenant_of_a_link_reaches_no_command_of_another_tenant(opened, demo, named, tmp_path):
    page = opened(f"/runs/{demo.others['run']}?as={quote(named)}")

    words = copied(page, tmp_path)

    assert [word for word in words if "Tenant" in word] == []
    assert "as=" not in page.get_by_role("link", name="Jobs").first.get_attribute("href")


@pytest.mark.parametrize("named", HOSTILE)
def test_only_the_name_of_a_tenant_is_taken_from_a_link(opened, demo, named):
    page = opened(f"/tenants?as={quote(named)}", tenant="provider")

    page.get_by_role("link", name="acme").first.wait_for()
    links = page.eval_on_selector_all("nav a", "all => all.map(each => each.href)")
    assert [link for link in links if "as=" in link] == []


def test_a_providers_command_names_the_tenant_in_one_word(opened, demo, tmp_path):
    page = opened(f"/runs/{demo.others['run']}?as=acme", tenant="provider")

    words = copied(page, tmp_path)

    assert words[:4] == ["-H", "Authorization: Bearer t", "-H", "Sweephand-Tenant: acme"]
    assert words[4].endswith(f"/v1/runs/{demo.others['run']}")


@pytest.mark.parametrize("text", [*HOSTILE, "", "it's", "''", "\\", "$TOKEN", "-rf", "*"])
def test_any_text_is_one_word_of_a_command(visitor, text):
    page = visitor().new_page()
    page.goto("/console")

    word = page.evaluate(
        """async (text) => {
            const app = document.querySelector("script[type=module]").src;
            return (await import(app.replace("app.js", "parts.js"))).shellWord(text);
        }""",
        text,
    )

    done = subprocess.run(["/bin/sh", "-c", f"printf %s {word}"], capture_output=True, text=True, check=True)
    assert done.stdout == text


def test_a_link_puts_no_text_on_the_sign_in_page(visitor):
    page = visitor().new_page()

    page.goto("/console/sign-in?error=x&error_description=Call+0900+123&state=wrong")

    page.get_by_text("This answer belongs to another sign-in").wait_for()
    assert "0900" not in page.content()


def test_every_answer_forbids_other_sites_and_insecure_visits(stack):
    client = stack.anonymous()

    for path in ("/console", "/console/nothing.js", "/", "/v1/jobs", "/v1/openapi.json", "/problems", "/subscriptions"):
        headers = client.get(path).headers
        assert headers["strict-transport-security"] == "max-age=31536000", path
        assert headers["cross-origin-resource-policy"] == "same-origin", path


def test_no_script_can_write_markup_into_the_page(visitor):
    page = visitor().new_page()
    page.goto("/console")

    refused = page.evaluate(
        """() => {
            try { document.createElement("p").innerHTML = "<b>x</b>"; } catch (why) { return why.name; }
            return "written";
        }"""
    )

    assert refused == "TypeError"
