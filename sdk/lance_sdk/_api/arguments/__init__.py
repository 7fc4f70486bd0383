"""The arguments of the public functions: checked, parsed and shown."""
