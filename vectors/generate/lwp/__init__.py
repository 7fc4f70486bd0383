"""Families of LWP's payloads: control commands, errors, answers to Fetch, names."""
