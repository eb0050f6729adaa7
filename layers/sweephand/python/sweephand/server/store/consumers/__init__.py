"""Consumers of events, and what they have missed."""
