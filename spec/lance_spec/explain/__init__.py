"""Explaining bytes: every field by name, value, meaning and verdict.

The explanation goes as far as the bytes make sense and names what is wrong with them. It is for
people in front of a hex dump; programs read frames with `lance_spec.frames`. `explain_any` takes
frames, messages, files of servers and slots, and captures.
"""

from lance_spec.explain._any import UnknownFormError, explain_any, forms
from lance_spec.explain._files import is_known_name
from lance_spec.explain._lwp.frames import explain
from lance_spec.explain._model import Explanation, Part, Row
from lance_spec.explain._nested import explain_message

__all__ = [
    "Explanation",
    "Part",
    "Row",
    "UnknownFormError",
    "explain",
    "explain_any",
    "explain_message",
    "forms",
    "is_known_name",
]
