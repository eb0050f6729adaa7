"""Without an engine for this machine only the rules are tested: `make test-rest` says so, and fails in CI."""

from __future__ import annotations

from tests.engine.mirror import BINARY

collect_ignore = [] if BINARY.exists() else ["test_mirror.py"]
