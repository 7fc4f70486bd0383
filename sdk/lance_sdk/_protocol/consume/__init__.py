"""Consuming: fetch state, requests, responses, and the checks that the log is still the same."""
