"""The resources, one module for each. All of the modules are made by .ci/sdk.py."""
