"""The asyncio half of the SDK. `resources` is generated; the other modules are written by hand."""
