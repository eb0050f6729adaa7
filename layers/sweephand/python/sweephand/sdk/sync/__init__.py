# Generated from aio/__init__.py by `make sdk`. Do not edit.
"""One half of the SDK. `sdk.sync` is made from `sdk.aio`, of which only `resources` is generated."""
