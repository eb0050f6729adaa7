"""The resources, one module for each. `make sdk` generates all of the modules."""
