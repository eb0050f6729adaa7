"""Makes the description of the native API."""
