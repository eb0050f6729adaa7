"""The authentication of HTTP actions to their targets: its fields, and its form in one request."""
