"""The files of a release: the same bytes each time, and a stack that can be deployed without a build."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from zipfile import ZipFile

import pytest

from sweephand.local.aws.template import load
from tests.template.cloudformation import ROOT
from tests.template.sam_cli import emulator, run
from tools.dist import build
from tools.dist.sbom import document


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    build.write(folder)
    return folder


@pytest.fixture(scope="module")
def unpacked(release, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stack")
    with ZipFile(release / f"{build.NAME}-stack.zip") as archive:
        archive.extractall(folder)
    return folder


def test_a_packaged_template_differs_only_in_the_places_of_its_layers(raw):
    template, sources = build.packaged((ROOT / "template.yaml").read_text())

    layers = {
        name: resource
        for name, resource in raw["Resources"].items()
        if resource["Type"] == "AWS::Serverless::LayerVersion"
    }
    assert sources == {name: layer["Properties"]["ContentUri"] for name, layer in layers.items()}
    assert "BuildMethod" not in template
    for name, source in sources.items():
        template = template.replace(f"ContentUri: layers/{name}", f"ContentUri: {source}")
    lines = (ROOT / "template.yaml").read_text().splitlines()
    assert template.splitlines() == [line for line in lines if "BuildMethod" not in line]


@pytest.mark.extended
def test_the_same_commit_makes_the_same_bytes(release, tmp_path):
    build.write(tmp_path)

    assert (tmp_path / "SHA256SUMS").read_text() == (release / "SHA256SUMS").read_text()


@pytest.mark.extended
def test_every_file_of_a_release_has_its_checksum(release):
    told = dict(reversed(line.split("  ")) for line in (release / "SHA256SUMS").read_text().splitlines())

    files = {path.name: path for path in release.iterdir() if path.name != "SHA256SUMS"}
    assert told == {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    assert {name.removeprefix(build.NAME) for name in files} == {
        "-py3-none-any.whl",
        ".tar.gz",
        "-sbom.json",
        "-stack.zip",
    }


@pytest.mark.extended
def test_a_packaged_stack_has_all_code_that_its_template_names(unpacked):
    template = load(unpacked / "template.yaml")

    for name, resource in template["Resources"].items():
        if place := resource.get("Properties", {}).get("CodeUri"):
            assert (unpacked / place / "app.py").is_file(), name
        if place := resource.get("Properties", {}).get("ContentUri"):
            assert any((unpacked / place / "python").rglob("*.pyc")), name
    locked = {f"{each['name'].lower().replace('-', '_')}-{each['version']}" for each in document()["components"]}
    installed = {path.name.lower().removesuffix(".dist-info") for path in unpacked.glob("layers/*/python/*.dist-info")}
    assert installed == locked


@pytest.mark.extended
def test_the_source_archive_makes_the_same_wheel(release, tmp_path):
    subprocess.run(["tar", "xzf", release / f"{build.NAME}.tar.gz", "-C", tmp_path], check=True)

    made = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path]
    subprocess.run(made, cwd=tmp_path / build.NAME, check=True, capture_output=True)

    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.read_bytes() == (release / wheel.name).read_bytes()


@pytest.mark.sam
def test_the_sam_cli_deploys_a_packaged_stack_without_a_build(unpacked, tmp_path_factory):
    with emulator(tmp_path_factory) as endpoint:
        to = ["--endpoint", endpoint, "--build-dir", unpacked]
        done = run([sys.executable, "-m", "tools.aws.sam_deploy_local", *to])

    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"/v1/health: .*\"version\"", done.stdout)
