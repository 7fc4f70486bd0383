"""How far a streaming query is, and what it keeps of that."""
