"""Cases that combine: what was done before, meanwhile and beside, and every field of an answer."""
