"""Deploys with the real SAM CLI: to the local stack, or to an account for the first time."""
