"""``lwp sf``: commands that look after store-and-forward slots."""
