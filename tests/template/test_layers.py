"""Guards of the package: what is built, that its byte code is valid on Lambda, and how large it is."""

from __future__ import annotations

import _imp
import os
import runpy
import struct
import subprocess
from pathlib import Path

import pytest

from tests.template.cloudformation import ROOT

LAYERS = {"CodeLayer": ROOT / "layers" / "sweephand", "DependenciesLayer": ROOT / "layers" / "dependencies"}
MAGIC_OF_PYTHON_3_13 = struct.pack("<H", 3571) + b"\r\n"
UNCHECKED_HASH = 1
WARNING = "warning: no Python 3.13 found"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Both layers as `sam build` makes them: layer -> (its folder python/, what make said on stderr)."""
    return {layer: _build(layer, tmp_path_factory.mktemp(layer)) for layer in LAYERS}


def test_the_layer_s_requirements_are_the_lock_without_what_lambda_brings():
    script = runpy.run_path(str(ROOT / ".ci" / "layer_lock.py"))
    lock = (ROOT / "requirements" / "runtime.txt").read_text()

    requirements = (ROOT / "layers" / "dependencies" / "requirements.txt").read_text()

    assert requirements == script["layer_lock"](lock), "run `make layer-lock`"
    assert requirements.count("==") == lock.count("==") - 2
    assert not [name for name in ("boto3==", "botocore==", "urllib3==") if f"\n{name}" in requirements]


def test_both_layers_make_byte_code_alike():
    one, other = ((folder / "byte_code.mk").read_text() for folder in LAYERS.values())

    assert one == other


def test_the_code_layer_is_the_package_without_what_is_for_the_user_s_machine(built):
    python, _ = built["CodeLayer"]
    source = ROOT / "layers" / "sweephand" / "python"

    shipped = {path.relative_to(python) for path in python.rglob("*.py")}
    expected = {path.relative_to(source) for path in source.rglob("*.py")}
    assert shipped == {path for path in expected if path.parts[1] not in {"local", "cli", "sdk"}}
    assert len(shipped) < len(expected)


def test_the_dependencies_layer_carries_the_lock_and_no_sdk_of_aws(built):
    python, _ = built["DependenciesLayer"]

    for package in ("aws_lambda_powertools", "httpcore", "jwt", "pynamodb", "tzdata"):
        assert (python / package).is_dir()
    for package in ("boto3", "botocore", "cryptography", "urllib3"):
        assert not (python / package).exists()


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_loads_no_compiled_module_so_that_it_fits_every_processor(built, layer):
    python, _ = built[layer]

    assert list(python.rglob("*.so")) == []


def test_the_package_stays_under_16_mib_unpacked(built):
    size = sum(path.stat().st_size for python, _ in built.values() for path in python.rglob("*") if path.is_file())

    assert size <= 16 * 2**20


@pytest.mark.parametrize("layer", LAYERS)
def test_byte_code_is_valid_whatever_date_sam_gives_the_files(built, layer):
    python, said = built[layer]
    if WARNING in said:
        assert not _python_3_13_is_at_hand()
        pytest.skip("no Python 3.13 on this machine, and the build said so")

    for source in python.rglob("*.py"):
        header = _byte_code_of(source).read_bytes()[:16]
        magic, flags, source_hash = header[:4], struct.unpack("<I", header[4:8])[0], header[8:]
        assert (magic, flags) == (MAGIC_OF_PYTHON_3_13, UNCHECKED_HASH), source
        assert source_hash == _imp.source_hash(struct.unpack("<I", magic)[0], source.read_bytes()), source


def test_tracebacks_name_the_place_on_lambda_and_not_the_build_machine(built):
    python, said = built["CodeLayer"]
    if WARNING in said:
        pytest.skip("no Python 3.13 on this machine, and the build said so")

    byte_code = _byte_code_of(python / "sweephand" / "ids.py").read_bytes()

    assert b"/opt/python/sweephand/ids.py" in byte_code
    assert str(python).encode() not in byte_code


def test_without_the_runtime_s_python_the_build_succeeds_and_says_in_one_line_what_is_lost(tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("sh", "cp", "find", "make", "mkdir", "rm"):
        (tools / tool).symlink_to(_which(tool))

    python, said = _build("CodeLayer", tmp_path / "out", PATH=str(tools), HOME=str(tmp_path), PYENV_ROOT=str(tmp_path))

    assert said.startswith(WARNING)
    assert said.count("\n") == 1
    assert (python / "sweephand" / "ids.py").is_file()
    assert list(python.rglob("*.pyc")) == []


def _build(layer, out, **environment):
    """Outside any make that may be running this test, whose flags would be inherited."""
    inherited = {name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MAKELEVEL", "MFLAGS"}}
    done = subprocess.run(
        ["make", "-s", f"build-{layer}", f"ARTIFACTS_DIR={out}"],
        cwd=LAYERS[layer],
        env=inherited | {"PIP_ROOT_USER_ACTION": "ignore"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return out / "python", done.stderr


def _byte_code_of(source):
    return source.parent / "__pycache__" / f"{source.stem}.cpython-313.pyc"


def _which(tool):
    for folder in os.get_exec_path():
        if (Path(folder) / tool).is_file():
            return Path(folder) / tool
    raise FileNotFoundError(tool)


def _python_3_13_is_at_hand():
    candidates = ["python3.13", *map(str, Path.home().glob(".pyenv/versions/3.13*/bin/python3"))]
    question = "import sys; print(sys.version_info[:2] == (3, 13))"
    for candidate in candidates:
        try:
            answer = subprocess.run([candidate, "-c", question], capture_output=True, text=True, check=False)
        except FileNotFoundError:
            continue
        if answer.stdout.strip() == "True":
            return True
    return False
