"""Measured ratios: us against a named limit or peer, in the same run.

Run ``python -m bench`` on a quiet machine; ``--quick`` takes fewer samples.
"""
