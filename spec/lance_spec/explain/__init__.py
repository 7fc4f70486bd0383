"""Explaining bytes: every field of captured frames by name, value, meaning and verdict.

The explanation goes as far as the bytes make sense and names what is wrong with them. It is
for people in front of a hex dump; programs read frames with `lance_spec.frames`.
"""

from lance_spec.explain._composed import explain_message
from lance_spec.explain._frames import explain
from lance_spec.explain._model import Explanation, Part, Row

__all__ = ["Explanation", "Part", "Row", "explain", "explain_message"]
