"""Consumers of events: their leases."""
