"""Read-only lists and totals: bounded queries by key, never a scan. All of the store that a facade may use."""
