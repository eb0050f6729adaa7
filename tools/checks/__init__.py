"""Chooses and runs the tests for `make test`, `make test-rest` and `make quick`."""
