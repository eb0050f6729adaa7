"""Every block of the pages that can be run or parsed names its test here. A block without one fails.

A page shows a command as `console`, and output as `text`, if no test can run it: these two languages are exempt.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from sweephand.cli.commands import job_sets
from tests.contract.native import described
from tests.local_stack import pages

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    str(page.relative_to(ROOT)): page.read_text()
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if "decisions" not in page.parts
}
BLOCK = re.compile(r"^([ >]*)```(\w+)([^\n]*)\n(.*?)^[ >]*``` *$", re.DOTALL | re.MULTILINE)
SHOWN = re.compile(r"<!-- file: (\S+) -->\n```(\w+)\n.*?<!-- end -->", re.DOTALL)
EXEMPT = {"console", "text"}

GUIDES = "tests/local_stack/test_guides.py::test_the_code_blocks_of_a_guide_run_unchanged"
SHELL = {
    "README.md": "tests/local_stack/test_guides.py::test_the_readers_own_job_of_the_readme_calls_their_endpoint",
    "docs/guide": GUIDES,
    "docs/migrate": GUIDES,
    "docs/reference": GUIDES,
    "docs/recipes": "tests/local_stack/test_recipes.py::test_a_recipe_does_what_its_page_says",
}
"""The test that runs all blocks of `sh` of a page, or of each page of a folder."""

MOVERS = "tests/contract/sdk/test_migrations.py"
PROGRAMS = {
    ("authentication.md", "python"): (
        1,
        "tests/contract/native/test_well_known.py::test_the_program_of_the_guide_runs",
    ),
    ("consumers.md", "python"): (2, "tests/contract/sdk/test_consumer.py::test_the_programs_of_the_guide_run"),
    ("first-steps.md", "python"): (
        7,
        "tests/local_stack/test_guides.py::test_the_first_steps_with_the_sdk_run_unchanged",
    ),
    ("first-steps.md", "typescript"): (
        7,
        "tests/local_stack/test_typescript.py::test_the_first_steps_in_typescript_run_unchanged",
    ),
    ("sdk.md", "python"): (7, "tests/contract/sdk/test_guide.py::test_the_programs_of_the_guide_run"),
    ("signatures.md", "python"): (
        1,
        "tests/unit/sdk/test_signatures.py::test_the_program_of_the_guide_answers_401_to_unsigned_calls",
    ),
    ("worker.md", "python"): (
        4,
        "tests/contract/sdk/test_worker.py::test_the_first_durable_task_of_the_guide_takes_ten_lines_and_two_commands",
    ),
    ("worker-once.md", "python"): (
        1,
        "tests/contract/sdk/test_worker.py::test_the_program_that_does_an_effect_once_runs",
    ),
    ("azure.md", "python"): (
        2,
        "tests/local_stack/test_azure_client.py::test_the_guides_client_and_its_policy_for_plain_http_work",
    ),
    ("nservicebus.md", "python"): (
        3,
        "tests/contract/sdk/test_migrations.py::test_tasks_and_timeouts_of_nservicebus_can_be_created_changed_and_revoked",
    ),
    ("root.md", "python"): (
        1,
        f"{MOVERS}::test_a_root_bot_reconciles_at_its_start_and_a_second_start_changes_nothing",
    ),
    # Needs a container engine: `make test-sam-local` runs the calls and the program, and fails if the guide lacks one
    # of the commands of the SAM CLI that it runs.
    ("sam-local.md", "bash"): (8, "tests/sam_local/conftest.py::run_block"),
}
"""How many blocks of a language a page has, and the test that runs them. Blocks that show a file are not counted."""

FILES = {
    "examples/typescript/report.ts": "tests/local_stack/test_typescript.py",
    "examples/verify_signature/receiver.ts": "tests/local_stack/test_typescript.py",
}
"""Files that a page shows and its own blocks of `sh` do not name: the test that runs them."""

NOT_OF_THE_API = None
JSON: dict[str, list[str | None]] = {
    "docs/guide/authentication.md": ["Action", "Action", "Authentication", "Authentication", "Action"],
    "docs/guide/calendars.md": ["answer Preview/properties/items/items"],
    "docs/guide/consumers.md": ["JobDraft", "JobDraft", "JobDraft"],
    "docs/guide/errors.md": ["answer ErrorGroup", "answer ErrorSummary", "RedriveRequest", "answer Operation"],
    "docs/guide/first-steps.md": ["answer NextRun", "answer Problem", "answer RunPage"],
    "docs/guide/job-sets.md": ["JobSetDraft"],
    "docs/guide/notations.md": ["answer Problem", *["answer Preview/properties/items/items"] * 5],
    "docs/guide/retries.md": ["Result", "JobPatch", "JobPatch"],
    "docs/guide/schedules.md": ["answer Preview", "answer Explanation", "answer Preview/properties/items/items"],
    # The second is a policy of IAM, and the third an event of the bus.
    "docs/guide/targets.md": ["JobDraft", NOT_OF_THE_API, NOT_OF_THE_API, "JobAction"],
    "docs/guide/azure-queues.md": ["JobDraft", "CollectionPatch"],
    "docs/guide/ecs.md": ["JobDraft"],
    "docs/guide/operating.md": [NOT_OF_THE_API],  # a policy of IAM
    "docs/operate/enterprise.md": [NOT_OF_THE_API, NOT_OF_THE_API],  # a boundary, and a policy of KMS
    "docs/operate/backup.md": [NOT_OF_THE_API],  # resources of CloudFormation
    "docs/recipes/alerts.md": [NOT_OF_THE_API],  # a policy of SNS
    "docs/reference/api.md": ["JobDraft", "answer Problem"],
    # tests/unit/domain/test_event.py validates the event. The other is a pattern of EventBridge.
    "docs/reference/events.md": [NOT_OF_THE_API, NOT_OF_THE_API],
}
"""The schema of each block of a page, in order. An answer may leave members out, and its values may be "..."."""


def _blocks(page: str, *languages: str) -> list[tuple[str, str, str]]:
    """Returns (indent, language, content) of the blocks of a page that show no file."""
    found = BLOCK.findall(SHOWN.sub("", PAGES[page]))
    return [(indent, language, text) for indent, language, _, text in found if language in languages]


def _there(test: str) -> bool:
    path, _, name = test.partition("::")
    if not (ROOT / path).exists():
        return False
    return bool(re.search(rf"^ *def {name}\(", (ROOT / path).read_text(), re.MULTILINE))


@pytest.mark.parametrize("page", PAGES)
def test_every_block_has_a_language_that_a_test_knows(page: str):
    assert {language for _, language, _, _ in BLOCK.findall(PAGES[page])} <= EXEMPT | {
        *("sh", "bash", "python", "typescript", "json", "toml", "yaml")
    }


@pytest.mark.parametrize("page", [page for page in PAGES if _blocks(page, "sh")])
def test_a_test_runs_every_block_for_a_shell(page: str):
    tabs = {None: ["curl"], "docs/guide/first-steps.md": ["curl", "Command line"]}
    run = {text for tab in tabs.get(page, tabs[None]) for _, text in pages.blocks_of(ROOT / page, tab)}

    assert {text for _, _, text in _blocks(page, "sh")} == run
    assert _there(SHELL[page if page == "README.md" else page.rpartition("/")[0]])


def test_a_test_runs_every_program():
    found: dict[tuple[str, str], int] = {}
    for page in PAGES:
        for _, language, _ in _blocks(page, "python", "typescript", "bash"):
            found[page.rpartition("/")[2], language] = found.get((page.rpartition("/")[2], language), 0) + 1

    assert found == {place: number for place, (number, _) in PROGRAMS.items()}
    assert [test for _, test in PROGRAMS.values() if not _there(test)] == []


def test_a_test_runs_or_reads_every_file_that_a_page_shows():
    for page, text in PAGES.items():
        shell = "".join(block for _, _, block in _blocks(page, "sh"))
        for path, language in SHOWN.findall(text):
            name = path.rpartition("/")[2]
            if language == "yaml":
                assert yaml.safe_load((ROOT / path).read_text()), path
            elif language in EXEMPT or path in FILES:
                assert language in EXEMPT or name in (ROOT / FILES[path]).read_text(), path
            else:
                assert name in shell or f"cd {Path(path).parent}" in shell or f"-m {Path(path).stem}" in shell, (
                    f"{page}: no block runs {path}"
                )


def test_every_block_of_json_has_a_schema_or_says_that_it_is_none_of_the_api():
    assert {page: len(_blocks(page, "json")) for page in PAGES if _blocks(page, "json")} == {
        page: len(schemas) for page, schemas in JSON.items()
    }


@pytest.mark.parametrize(
    ("page", "number"), [(page, number) for page, schemas in JSON.items() for number in range(len(schemas))]
)
def test_a_block_of_json_is_what_the_api_takes_or_answers(page: str, number: int):
    schema, text = JSON[page][number], _blocks(page, "json")[number][2]
    for value in _values(text):
        if schema is not NOT_OF_THE_API:
            _validate(schema, value)


def _values(text: str) -> list[Any]:
    """Returns the values of a block: one, the entries of an array, or one for each line that begins with a brace."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return [json.loads(each) for each in re.split(r"\n(?=\{)", text)]
    return value if isinstance(value, list) else [value]


def _validate(schema: str, value: Any) -> None:
    answer, name = schema.startswith("answer "), schema.removeprefix("answer ")
    validator = described._validator(f"/components/schemas/{name}")
    errors = validator.iter_errors(_without_gaps(value) if answer else value)
    assert [f"{e.json_path}: {e.message}" for e in errors if not (answer and e.validator == "required")] == []


def _without_gaps(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_gaps(each) for name, each in value.items() if not _is_gap(each)}
    if isinstance(value, list):
        return [_without_gaps(each) for each in value if not _is_gap(each)]
    return value


def _is_gap(value: Any) -> bool:
    return isinstance(value, str) and value.endswith("...")


def test_job_sets_in_toml_are_what_the_api_takes(tmp_path):
    found = [text for page in PAGES for _, language, _, text in BLOCK.findall(PAGES[page]) if language == "toml"]
    variables = {"BASE_URL": "https://example.org", "BILLING_URL": "https://example.org"}

    assert len(found) == 3
    for text in found:
        whole = text if text.startswith("set = ") else f'set = "a"\njobs = [{{key = "a"}}]\n{text}'  # only the defaults
        (tmp_path / "jobs.toml").write_text(whole)
        jobs = job_sets.read(tmp_path / "jobs.toml", variables).jobs
        usual = {"action": {"type": "http", "url": "https://example.org"}}
        _validate("JobSetDraft", {"jobs": [{**each, **({} if text is whole else usual)} for each in jobs]})


class _Template(yaml.SafeLoader):
    """Reads the short forms of CloudFormation's functions."""


_Template.add_multi_constructor("!", lambda loader, _, node: loader.construct_scalar(node))


def test_parts_of_templates_are_yaml_and_their_job_set_is_what_the_api_takes():
    found = [(page, text) for page in PAGES for _, _, text in _blocks(page, "yaml")]
    read = {page: yaml.load(text, _Template) for page, text in found}

    assert len(found) == len(read)
    assert set(read) == {"docs/guide/job-sets.md", "docs/operate/look-after.md"}
    _validate("JobSetDraft", {"jobs": json.loads(read["docs/guide/job-sets.md"]["Jobs"]["Properties"]["Jobs"])})
