"""The imports of jobs from Azure Scheduler and SAP Job Scheduling Service."""
