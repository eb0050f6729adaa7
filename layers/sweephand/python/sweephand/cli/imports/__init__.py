"""Commands that import jobs from Azure Scheduler and SAP Job Scheduling Service."""
