"""The bill of materials names every package of the layers, as it is locked."""

from __future__ import annotations

import re

from tests.template.cloudformation import ROOT
from tools.dist.sbom import document


def test_every_locked_package_of_a_layer_is_in_the_bill_with_its_version_and_hashes():
    components = document()["components"]

    for layer in ("dependencies", "cryptography"):
        lock = (ROOT / "layers" / layer / "requirements.txt").read_text()
        listed = [each for each in components if {"name": "sweephand:layer", "value": layer} in each["properties"]]
        assert {(each["name"], each["version"]) for each in listed} == set(
            re.findall(r"^([\w.-]+)==([^\s;\\]+)", lock, re.MULTILINE)
        )
        assert sum(len(each["properties"]) - 1 for each in listed) == lock.count("--hash=sha256:")


def test_the_bill_names_packages_as_scanners_look_them_up():
    for each in document()["components"]:
        assert each["purl"] == each["bom-ref"]
        assert re.fullmatch(r"pkg:pypi/[a-z0-9.-]+@[0-9A-Za-z.+-]+", each["purl"])


def test_the_bill_of_the_same_locks_is_the_same():
    assert document() == document()
    assert document().keys() == {"bomFormat", "specVersion", "version", "metadata", "components"}
