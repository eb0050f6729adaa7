"""Read-only lists and totals: bounded queries by key, never a scan. Facades may use no other part of the store."""
