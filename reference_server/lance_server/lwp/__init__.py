"""LWP: one connection's session, its requests and their responses (LWP sections 3 to 5)."""
