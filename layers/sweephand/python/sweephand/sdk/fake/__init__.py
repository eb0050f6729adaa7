"""A stack in memory for users' tests: the same client, a clock that tests move, and no network."""
