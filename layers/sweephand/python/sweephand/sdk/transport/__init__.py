"""Requests, answers and refusals: what the blocking and the asyncio client share. Not part of the public interface."""
