"""The asyncio half: what is written by hand, and `resources`, which is made."""
