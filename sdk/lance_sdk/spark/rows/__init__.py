"""Records as rows of a DataFrame, and rows as records."""
