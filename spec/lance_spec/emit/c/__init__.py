"""Headers in C."""
