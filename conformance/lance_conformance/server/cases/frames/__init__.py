"""Cases about frames, whatever they carry."""
