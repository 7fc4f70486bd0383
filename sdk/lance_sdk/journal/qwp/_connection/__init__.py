"""Connections of a QWP sender: hosts, upgrade, messages and their acknowledgements."""
