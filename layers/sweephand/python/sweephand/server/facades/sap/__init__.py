"""The API of SAP Job Scheduling Service for its existing clients: a thin mapping onto the domain."""
