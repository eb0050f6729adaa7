"""A stack in memory for users' tests: the same client, a clock that is moved by hand, and no network."""
