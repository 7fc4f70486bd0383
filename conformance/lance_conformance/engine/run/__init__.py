"""Asking: which cases, in which order, with what deadline, and what their answers mean."""
