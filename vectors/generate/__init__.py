"""Writes the test vectors from hand-checked values, with a codec of its own.

Nothing here imports the packages that the vectors test: checksums are computed bit by bit and
bytes are laid out field by field, so that a bug cannot appear on both sides. Run
``python -m generate`` in ``vectors/``; ``--check`` only reports files that differ.
"""
