"""How the console is served: small, kept by the browser, and under a strict policy."""

from __future__ import annotations

import gzip
import subprocess

from sweephand.local.settings import CHECKOUT

MOST_BYTES = 150_000


def test_the_root_leads_to_the_console(stack):
    answer = stack.anonymous().get("/")

    assert (answer.status_code, answer.headers["location"]) == (302, "/console")


def test_a_trailing_slash_leads_to_the_console(stack):
    answer = stack.anonymous().get("/console/?as=acme")

    assert (answer.status_code, answer.headers["location"]) == (302, "/console?as=acme")


def test_an_unknown_path_is_answered_with_a_problem_as_on_aws(stack):
    answer = stack.anonymous().get("/nowhere")

    assert answer.headers["content-type"] == "application/problem+json"


def test_the_page_is_never_cached_and_its_files_are_cached_for_a_year(stack):
    client = stack.anonymous()

    page = client.get("/console/jobs")
    script = page.text.split('<script type="module" src="')[1].split('"')[0]
    file = client.get(script)

    assert page.headers["cache-control"] == "no-store"
    assert file.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert file.headers["content-type"].startswith("text/javascript")
    assert file.headers["content-encoding"] == "gzip"


def test_a_file_of_another_version_is_not_found(stack):
    assert stack.anonymous().get("/console/0123456789abcdef/app.js").status_code == 404


def test_the_security_policy_allows_scripts_and_styles_only_from_the_stack(stack):
    policy = stack.anonymous().get("/console").headers["content-security-policy"]

    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


def test_all_files_together_stay_within_the_size_budget():
    static = CHECKOUT / "functions" / "console" / "static"
    files = [path for path in static.rglob("*") if path.is_file() and path.suffix != ".txt"]
    sizes = [len(gzip.compress(path.read_bytes())) for path in files]

    assert sum(sizes) < MOST_BYTES


def test_a_visit_loads_nothing_from_other_hosts(opened, stack, demo):
    page = opened("/jobs")

    loaded = page.evaluate("performance.getEntriesByType('resource').map(each => each.name)")
    assert loaded
    assert [name for name in loaded if not name.startswith(stack.base_url)] == []


def test_the_libraries_are_built_from_their_lock_file():
    build = CHECKOUT / "tools" / "console" / "vendor" / "build"

    done = subprocess.run([build, "--check"], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_types_declared_in_the_modules_are_correct():
    check = CHECKOUT / "tools" / "console" / "types" / "check"

    done = subprocess.run([check], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
