"""The API of Azure Scheduler for its existing clients: a thin mapping onto the domain."""
