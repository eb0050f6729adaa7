"""Prepares the template for the local deploy: reads the YAML, packs the code, finds the routes. No AWS calls."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

# The earliest date of a zip. It is fixed, so that the same code has the same hash.
ZIP_DATE = (1980, 1, 1, 0, 0, 0)
SKIPPED_FOLDERS = frozenset({"__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache"})
# Packages for the user's machine. The built layer does not contain them either (layers/sweephand/Makefile).
USERS_MACHINE = tuple(f"python/sweephand/{room}/" for room in ("cli", "local", "sdk", "testing"))
PACKAGE = Path(__file__).resolve().parents[2]


class _Loader(yaml.SafeLoader):
    """A SafeLoader that reads CloudFormation's short forms."""


def _short_form(loader: yaml.Loader | yaml.SafeLoader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        assert isinstance(node, yaml.MappingNode)
        value = loader.construct_mapping(node, deep=True)
    if suffix in {"Ref", "Condition"}:
        return {suffix: value}
    if suffix == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _short_form)
# A date such as the template's version stays a string.
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def load(path: Path) -> dict[str, Any]:
    """Returns the template with short forms expanded (`!Ref x` is `{"Ref": "x"}`)."""
    loaded = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)  # noqa: S506 - a SafeLoader
    if not isinstance(loaded, dict) or "Resources" not in loaded:
        raise ValueError(f"{path} is not a CloudFormation template")
    return loaded


def resources(template: Mapping[str, Any], kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields (logical id, properties) of every resource of type `kind`."""
    for logical_id, resource in template["Resources"].items():
        if resource["Type"] == kind:
            yield logical_id, resource.get("Properties", {})


def data_shape(template: Mapping[str, Any]) -> str:
    """Returns a hash of what stored rows depend on: the tables' keys.

    A change of these would make the emulator replace the table and lose its rows. Other changes are updates.
    """
    keys = {
        logical_id: properties.get("KeySchema")
        for logical_id, properties in resources(template, "AWS::DynamoDB::Table")
    }
    return hashlib.sha256(json.dumps(keys, sort_keys=True).encode()).hexdigest()[:16]


def zip_folder(folder: Path, prefix: str = "") -> bytes:
    """Returns a zip of `folder`, with the same bytes for the same files. prefix: a path in the zip that ends in `/`."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            inner = path.relative_to(folder)
            place = prefix + inner.as_posix()
            if not path.is_file() or SKIPPED_FOLDERS & set(inner.parts) or place.startswith(USERS_MACHINE):
                continue
            entry = zipfile.ZipInfo(place, ZIP_DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, path.read_bytes())
    return stream.getvalue()


def empty_zip() -> bytes:
    """Returns a zip of one empty file, for a layer whose packages are in the emulator's own environment."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(zipfile.ZipInfo("python/.keep", ZIP_DATE), b"")
    return stream.getvalue()


def pack(template: Mapping[str, Any], root: Path, bucket: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Returns the template with code addresses in `bucket`, and the objects to upload by key.

    root: folder that CodeUri and ContentUri are relative to. A key contains the object's hash, so that unchanged code
    leaves the template unchanged.
    """
    packed = copy.deepcopy(dict(template))
    objects: dict[str, bytes] = {}
    for _, properties in resources(packed, "AWS::Serverless::Function"):
        properties["CodeUri"] = _place(zip_folder(root / properties["CodeUri"]), bucket, objects)
    for _, properties in resources(packed, "AWS::Serverless::LayerVersion"):
        content = _layer(root / properties["ContentUri"] / "python")
        properties["ContentUri"] = _place(content, bucket, objects)
    return packed, objects


def _layer(sources: Path) -> bytes:
    """Returns a layer's zip. The package of the service may be the installed one; all else is in the emulator's own
    environment.
    """
    if sources.is_dir():
        return zip_folder(sources, "python/")
    return zip_folder(PACKAGE, "python/sweephand/") if sources.parent.name == PACKAGE.name else empty_zip()


def _place(content: bytes, bucket: str, objects: dict[str, bytes]) -> str:
    key = f"{hashlib.sha256(content).hexdigest()[:32]}.zip"
    objects[key] = content
    return f"s3://{bucket}/{key}"


FUNCTION_IN_URI = re.compile(r"\$\{(\w+)\.Arn\}")


def routes_of(body: Mapping[str, Any]) -> dict[str, str]:
    """Returns the function's logical id for each route (`ANY /v1/{proxy+}`) in an HTTP API's OpenAPI body.

    Includes routes under a condition (Fn::If); if the condition is false, their function is not deployed. Raises
    ValueError for a route that needs an authorizer or calls something other than a function.
    """
    routes: dict[str, str] = {}
    for path, methods in body.get("paths", {}).items():
        for method, under_condition in _unconditional(methods).items():
            operation = _unconditional(under_condition)
            verb = "ANY" if method == "x-amazon-apigateway-any-method" else method.upper()
            route = "$default" if path.lstrip("/") == "$default" else f"{verb} {path}"
            uri = _unconditional(operation.get("x-amazon-apigateway-integration", {}).get("uri"))
            text = uri.get("Fn::Sub") if isinstance(uri, Mapping) else uri
            match = FUNCTION_IN_URI.search(text) if isinstance(text, str) else None
            if match is None:
                raise ValueError(f"route {route} does not lead to a function of the template")
            if any("NONE" not in need for need in operation.get("security", [])):
                raise ValueError(f"route {route} needs an authorizer")
            routes[route] = match[1]
    return routes


def _unconditional(node: Any) -> Any:
    """Returns the value for conditions that are true."""
    while isinstance(node, Mapping) and "Fn::If" in node:
        node = node["Fn::If"][1]
    return node
