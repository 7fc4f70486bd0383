"""The questions to a client, one module for each thing that can go wrong."""
