"""Logger names. The package logs through the standard library and configures nothing.

``lance_sdk.session``
    connections made, lost and tried again: one warning an incident, not one a retry
``lance_sdk.delivery``
    batches that are sent again; callbacks that raised
"""

import logging

__all__ = ["DELIVERY", "SESSION"]

logging.getLogger("lance_sdk").addHandler(logging.NullHandler())

SESSION = logging.getLogger("lance_sdk.session")
DELIVERY = logging.getLogger("lance_sdk.delivery")
