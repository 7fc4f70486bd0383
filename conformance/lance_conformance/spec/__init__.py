"""The rules of the specification, clause by clause."""
