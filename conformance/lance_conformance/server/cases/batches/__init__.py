"""Cases about what is stored: batches, records and the log."""
