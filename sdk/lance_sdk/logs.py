"""Logger names. The package logs through the standard library and configures nothing.

``lance_sdk.session``
    connections made, lost and tried again: one warning an incident, not one a retry
``lance_sdk.delivery``
    batches that are sent again; callbacks that raised
``lance_sdk.hooks``
    hooks that raised, each once
``lance_sdk.groups``
    rebalances, commits that failed, callbacks that raised
``lance_sdk.offsets``
    hooks after commits that raised
``lance_sdk.dead_letters``
    each record that was stored as a dead letter, and why
``lance_sdk.wire``
    at DEBUG every frame that leaves (``>``) and arrives (``<``): kinds, numbers and sizes, never
    a token and never the data of a record

What a formatter can use stands in ``record.lance``, a dictionary.
"""

import logging

__all__ = ["DELIVERY", "HOOKS", "SESSION", "WIRE"]

logging.getLogger("lance_sdk").addHandler(logging.NullHandler())

SESSION = logging.getLogger("lance_sdk.session")
DELIVERY = logging.getLogger("lance_sdk.delivery")
HOOKS = logging.getLogger("lance_sdk.hooks")
WIRE = logging.getLogger("lance_sdk.wire")
