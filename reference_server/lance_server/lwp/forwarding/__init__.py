"""Requests that another server answers: handed on to it, and its answers handed back."""
