"""The API of Azure Scheduler, as its clients know it: a thin mapping onto the domain."""
