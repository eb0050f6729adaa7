"""`make dist`: makes everything that a release publishes, in dist/. The same commit makes the same bytes.

- the wheel and the source archive of the SDK and the command line
- the stack: the template with its functions and built layers, which `sam deploy` takes as it is
- the bill of materials of the layers, and the checksums of all files
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from sweephand import __version__
from tools.dist import sbom

ROOT = Path(__file__).resolve().parents[2]
NAME = f"sweephand-{__version__}"
BESIDES = ("LICENSE", "samconfig.toml")
FIRST_DATE = (1980, 1, 1, 0, 0, 0)
"""The date of every file in an archive: the first one that the form knows."""
LAYER = re.compile(r"^  (\w+):$|^    Metadata: \{BuildMethod: makefile.*\}\n|^      ContentUri: (layers/\w+)$", re.MULTILINE)


def packaged(template: str) -> tuple[str, dict[str, str]]:
    """Returns the template with the places of built layers, and the source folder of each layer by its name."""
    sources: dict[str, str] = {}
    resource = ""

    def replaced(part: re.Match[str]) -> str:
        nonlocal resource
        if part[2]:
            sources[resource] = part[2]
            return f"      ContentUri: layers/{resource}"
        resource = part[1] or resource
        return part[0] if part[1] else ""

    return LAYER.sub(replaced, template), sources


def _built(layer: str, source: str, to: Path) -> Iterator[tuple[str, bytes]]:
    """Builds a layer as `sam build` does, and yields its files. Ends the program if there is no Python for byte code."""
    inherited = {name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MAKELEVEL", "MFLAGS"}}
    command = ["make", "-s", f"build-{layer}", f"ARTIFACTS_DIR={to}"]
    subprocess.run(command, cwd=ROOT / source, env=inherited | {"PIP_ROOT_USER_ACTION": "ignore"}, check=True)  # noqa: S603
    if not any(to.rglob("*.pyc")):
        sys.exit(f"{layer} has no byte code, which would make cold starts slow: install the Python that make names above")
    for path in sorted(to.rglob("*")):
        if path.is_file():
            yield f"layers/{layer}/{path.relative_to(to).as_posix()}", path.read_bytes()


def _files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yields the name and content of each file of the stack's archive. folder: where layers are built."""
    template, sources = packaged((ROOT / "template.yaml").read_text())
    yield "template.yaml", template.encode()
    tracked = ["git", "ls-files", "-z", "functions", *BESIDES]
    listed = subprocess.run(tracked, cwd=ROOT, check=True, capture_output=True, text=True)  # noqa: S603
    for name in sorted(filter(None, listed.stdout.split("\0"))):
        yield name, (ROOT / name).read_bytes()
    for layer, source in sources.items():
        yield from _built(layer, source, folder / layer)


def write_stack(path: Path) -> None:
    """Writes the archive of the stack, whose bytes depend on nothing but its files."""
    with tempfile.TemporaryDirectory() as folder, ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, content in _files(Path(folder)):
            entry = ZipInfo(name, FIRST_DATE)
            entry.external_attr, entry.compress_type = 0o644 << 16, ZIP_DEFLATED
            archive.writestr(entry, content)


def checksums(folder: Path) -> str:
    """Returns the lines that `sha256sum --check` reads."""
    files = sorted(path for path in folder.iterdir() if path.name.startswith(NAME))
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


def write(folder: Path) -> None:
    """Writes all files of the release into a folder, and removes those of an earlier one."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in (*folder.glob("sweephand-*"), *folder.glob("SHA256SUMS")):
        old.unlink()
    build = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
    (folder / f"{NAME}-sbom.json").write_text(json.dumps(sbom.document(), indent=1) + "\n")
    write_stack(folder / f"{NAME}-stack.zip")
    (folder / "SHA256SUMS").write_text(checksums(folder))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=ROOT / "dist", help="the folder; default: dist")
    folder = parser.parse_args().to
    write(folder)
    sys.stdout.write((folder / "SHA256SUMS").read_text())


if __name__ == "__main__":
    main()
