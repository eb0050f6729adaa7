"""Receiving events and tasks: queues, handlers and heartbeats. Not part of the public interface."""
