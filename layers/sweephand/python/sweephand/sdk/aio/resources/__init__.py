"""The resources. Made by .ci/sdk.py, all but this line."""
