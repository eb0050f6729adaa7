"""The API of SAP Job Scheduling Service, as its clients know it: a thin mapping onto the domain."""
