"""The real SAM CLI: it finds the template good, builds it on this machine's Python, and deploys it to the emulator."""

from __future__ import annotations

import json
import re
import shlex
import sys

import pytest

from tests.template.cloudformation import ROOT
from tests.template.sam_cli import SAM, emulator, run

pytestmark = pytest.mark.sam

FUNCTIONS = (
    *("ApiFunction", "SapApiFunction", "AzureApiFunction", "SweeperFunction", "ExecutorFunction", "AuditorFunction"),
    "OperationsFunction",
)


def test_sam_validate_reports_nothing():
    done = run([SAM, "validate", "--lint"])

    assert done.returncode == 0, done.stdout + done.stderr
    assert "is a valid SAM Template" in done.stdout


REGIONS = (
    *("us-east-1", "eu-central-1", "eu-south-2", "ap-southeast-4", "il-central-1", "me-central-1", "ca-west-1"),
    "us-gov-west-1",
)
IGNORED = ("W1028", "W1033")
"""SAM's transform writes a branch within a branch of the same condition. The template names the other check itself."""


def test_the_translated_template_is_right_in_each_region(translated, tmp_path):
    (tmp_path / "template.json").write_text(json.dumps(translated, default=str))

    done = run([SAM.with_name("cfn-lint"), "-i", *IGNORED, "-r", *REGIONS, "--", tmp_path / "template.json"])

    assert (done.returncode, done.stdout) == (0, "")


def test_sam_build_packs_only_the_handler_of_each_function(built):
    for function in FUNCTIONS:
        assert [path.name for path in (built / function).iterdir()] == ["app.py"]


def test_sam_build_includes_the_consoles_files(built):
    assert (built / "ConsoleFunction" / "static" / "pages" / "jobs.js").is_file()


def test_sam_build_builds_all_layers(built):
    assert (built / "CodeLayer" / "python" / "sweephand" / "server" / "wiring.py").is_file()
    assert (built / "DependenciesLayer" / "python" / "pynamodb").is_dir()
    for layer, machine in (("CryptographyX86Layer", "x86_64"), ("CryptographyArmLayer", "aarch64")):
        assert (built / layer / "python" / f"_cffi_backend.cpython-313-{machine}-linux-gnu.so").is_file()


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory):
    """The address of an emulator on which nothing stands."""
    with emulator(tmp_path_factory) as address:
        yield address


def test_the_documented_first_deploy_asks_only_about_the_change_set(built, endpoint):
    (command,) = re.findall(r"^\$ sam build && (sam deploy .*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    _, *options = shlex.split(command)

    done = run(
        [SAM, *options, "--template-file", built / "template.yaml", "--config-file", ROOT / "samconfig.toml"],
        answers="y\n",
        AWS_ENDPOINT_URL=endpoint,
        AWS_ACCESS_KEY_ID="test",
        AWS_SECRET_ACCESS_KEY="test",
    )

    assert re.findall(r"(.*)\[y/N\]", done.stdout) == ["Deploy this changeset? "], done.stdout + done.stderr
    assert "Successfully created/updated stack - sweephand" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 0


def test_declining_the_change_set_creates_nothing(built, endpoint):
    done = run(
        [
            *(SAM, "deploy", "--region", "us-east-1", "--stack-name", "unconfirmed"),
            *("--template-file", built / "template.yaml", "--config-file", ROOT / "samconfig.toml"),
        ],
        answers="\n",
        AWS_ENDPOINT_URL=endpoint,
        AWS_ACCESS_KEY_ID="test",
        AWS_SECRET_ACCESS_KEY="test",
    )

    assert "Successfully created/updated stack" not in done.stdout
    assert done.stdout.count("[y/N]") == 1


def test_sam_deploy_creates_a_stack_that_answers(built, endpoint):
    done = run([sys.executable, "-m", "tools.aws.sam_deploy_local", "--endpoint", endpoint, "--build-dir", built])

    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"/v1/health: .*\"version\"", done.stdout)
