"""What the document says, clause by clause."""
