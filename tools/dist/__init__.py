"""Makes what a release publishes, and the requirements of its layers."""
