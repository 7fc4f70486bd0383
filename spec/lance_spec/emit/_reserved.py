"""Reserved fields that not every receiver checks."""

from lance_spec.ir.nodes import Field


def is_tolerated(field: Field) -> bool:
    """Whether only strict dialects refuse other values of a reserved field (AMB-33)."""
    return field.facts.reserved and "AMB-33" in field.facts.ambiguities
