"""Hypothesis strategies for whatever the grammar describes."""
