"""Guards of the package: what is built, that its byte code is valid on Lambda, and how large it is."""

from __future__ import annotations

import _imp
import json
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from tests.template.cloudformation import ROOT
from tools.dist.layer_lock import layer_locks

LAYERS = {
    "CodeLayer": ROOT / "layers" / "sweephand",
    "DependenciesLayer": ROOT / "layers" / "dependencies",
    "CryptographyX86Layer": ROOT / "layers" / "cryptography",
    "CryptographyArmLayer": ROOT / "layers" / "cryptography",
}
CARRIED = {"__init__.py", "base", "domain", "formats", "schedules", "server"}
OF_PYTHON_ALONE = ("CodeLayer", "DependenciesLayer")
MAGIC_OF_PYTHON_3_13 = struct.pack("<H", 3571) + b"\r\n"
ELF_MACHINE = {"x86_64": 62, "aarch64": 183}
UNCHECKED_HASH = 1
WARNING = "warning: no Python 3.13 found"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The layers as `sam build` makes them: layer -> (its folder python/, what make said on stderr)."""
    return {layer: _build(layer, tmp_path_factory.mktemp(layer)) for layer in LAYERS}


def test_the_layers_requirements_are_the_lock_without_the_packages_of_lambda():
    lock = (ROOT / "requirements" / "runtime.txt").read_text()

    wanted = layer_locks(lock)
    written = {name: (ROOT / "layers" / name / "requirements.txt").read_text() for name in wanted}

    assert written == wanted, "run `make layer-lock`"
    assert sum(text.count("==") for text in written.values()) == lock.count("==") - 5
    for name in ("boto3==", "botocore==", "jmespath==", "python-dateutil==", "six==", "urllib3=="):
        assert not [text for text in written.values() if f"\n{name}" in text]


def test_the_layers_compile_byte_code_in_the_same_way():
    assert len({(folder / "byte_code.mk").read_text() for folder in LAYERS.values()}) == 1


def test_the_package_layers_install_wheels_in_the_same_way():
    assert len({(ROOT / "layers" / name / "wheels.mk").read_text() for name in ("dependencies", "cryptography")}) == 1


def test_the_code_layer_is_the_package_without_the_parts_for_the_users_machine(built):
    python, _ = built["CodeLayer"]
    source = ROOT / "layers" / "sweephand" / "python"

    shipped = {path.relative_to(python) for path in python.rglob("*.py")}
    expected = {path.relative_to(source) for path in source.rglob("*.py")}
    assert shipped == {path for path in expected if path.parts[1] in CARRIED}
    assert len(shipped) < len(expected)


def test_the_dependencies_layer_contains_the_lock_and_no_aws_sdk(built):
    python, _ = built["DependenciesLayer"]

    for package in ("aws_lambda_powertools", "h11", "httpcore2", "jwt", "pynamodb", "tzdata"):
        assert (python / package).is_dir()
    for package in ("boto3", "botocore", "cryptography", "dateutil", "urllib3"):
        assert not (python / package).exists()


def test_the_trimmed_powertools_writes_every_kind_of_line(built):
    """In a process whose first choice are the layers, as on Lambda. Seen failing without its `jmespath_utils`."""
    folders = [str(built[layer][0]) for layer in OF_PYTHON_ALONE]
    code = "import aws_lambda_powertools as found"
    code += "; from sweephand.server.telemetry import Telemetry; said = Telemetry('stack'); said.info('run', attempt=1)"
    code += "; said.warning('w', code='a'); said.error('e', reason='b'); said.measure(Failed=1); print(found.__file__)"

    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": os.pathsep.join(folders), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )

    *lines, where = done.stdout.splitlines()
    assert where.startswith(folders[1])
    assert [json.loads(line).get("message") for line in lines] == ["run", "w", "e", None]


@pytest.mark.parametrize("layer", OF_PYTHON_ALONE)
def test_a_layer_loads_no_compiled_module_so_that_it_fits_every_processor(built, layer):
    python, _ = built[layer]

    assert list(python.rglob("*.so")) == []


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("layer", "machine"), [("CryptographyX86Layer", "x86_64"), ("CryptographyArmLayer", "aarch64")]
)
@pytest.mark.parametrize("said", ["", "x86_64", "arm64"])
def test_the_cryptography_layer_is_compiled_for_its_processor_and_runtime_on_any_build_machine(
    tmp_path, layer, machine, said
):
    python, _ = _build(layer, tmp_path, ARCHITECTURE=said)

    assert (python / "cryptography" / "x509" / "__init__.py").is_file()
    assert (python / f"_cffi_backend.cpython-313-{machine}-linux-gnu.so").is_file()
    (binding,) = python.glob("cryptography/hazmat/bindings/_rust*.so")
    assert ELF_MACHINE[machine] == struct.unpack("<H", binding.read_bytes()[18:20])[0]


def test_a_failed_install_fails_the_build(tmp_path):
    folder = tmp_path / "layer"
    shutil.copytree(LAYERS["CryptographyX86Layer"], folder)
    (folder / "requirements.txt").write_text("cryptography==50.0.2 --hash=sha256:" + "0" * 64 + "\n")

    done = subprocess.run(
        ["make", "-s", "build-CryptographyX86Layer", f"ARTIFACTS_DIR={tmp_path / 'out'}"],
        cwd=folder,
        capture_output=True,
        check=False,
    )

    assert done.returncode != 0


def test_the_package_stays_under_16_mib_unpacked(built):
    folders = [built[layer][0] for layer in OF_PYTHON_ALONE]
    size = sum(path.stat().st_size for python in folders for path in python.rglob("*") if path.is_file())

    assert size <= 16 * 2**20


@pytest.mark.parametrize("layer", LAYERS)
def test_byte_code_is_valid_whatever_file_dates_sam_sets(built, layer):
    python, said = built[layer]
    if WARNING in said:
        assert not _python_3_13_is_at_hand()
        pytest.skip("no Python 3.13 on this machine, and the build said so")

    for source in python.rglob("*.py"):
        header = _byte_code_of(source).read_bytes()[:16]
        magic, flags, source_hash = header[:4], struct.unpack("<I", header[4:8])[0], header[8:]
        assert (magic, flags) == (MAGIC_OF_PYTHON_3_13, UNCHECKED_HASH), source
        assert source_hash == _imp.source_hash(struct.unpack("<I", magic)[0], source.read_bytes()), source


def test_tracebacks_show_the_paths_on_lambda_and_not_on_the_build_machine(built):
    python, said = built["CodeLayer"]
    if WARNING in said:
        pytest.skip("no Python 3.13 on this machine, and the build said so")

    byte_code = _byte_code_of(python / "sweephand" / "base" / "ids.py").read_bytes()

    assert b"/opt/python/sweephand/base/ids.py" in byte_code
    assert str(python).encode() not in byte_code


def test_the_build_succeeds_without_the_runtimes_python_and_states_the_loss_in_one_line(tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("sh", "cp", "find", "make", "mkdir", "rm"):
        (tools / tool).symlink_to(_which(tool))

    python, said = _build("CodeLayer", tmp_path / "out", PATH=str(tools), HOME=str(tmp_path), PYENV_ROOT=str(tmp_path))

    assert said.startswith(WARNING)
    assert said.count("\n") == 1
    assert (python / "sweephand" / "base" / "ids.py").is_file()
    assert list(python.rglob("*.pyc")) == []


def _build(layer, out, **environment):
    """Builds outside of any make that may be running this test, whose flags would be inherited."""
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
