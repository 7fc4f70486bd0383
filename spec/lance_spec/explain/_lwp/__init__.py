"""Explaining LWP: frames, their headers, payloads and records."""
