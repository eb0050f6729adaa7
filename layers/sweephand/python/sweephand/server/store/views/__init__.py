"""Read-only lists and totals: bounded queries by key, never a scan. This is the only part of the store for facades."""
