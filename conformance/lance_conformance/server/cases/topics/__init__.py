"""Cases about topics, their names and their retention."""
