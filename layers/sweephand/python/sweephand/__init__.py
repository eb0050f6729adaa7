"""Sweephand: job scheduling as a service that people run in their own AWS account."""

__version__ = "0.2.0"
