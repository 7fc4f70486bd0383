"""Families of QWP."""
