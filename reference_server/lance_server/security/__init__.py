"""Security: who may connect, and what they may do (LWP section 7, design section 28)."""
