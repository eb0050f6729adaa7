"""Makes the parts of the SDK that follow from the description of the API."""
