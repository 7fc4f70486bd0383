"""``lwp top``: what servers do, as it changes."""
