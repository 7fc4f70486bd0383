"""The golden rules of the `specified` dialect: the document's, with JSON errors."""

import json

from lance_conformance.server.golden.codec import Reply
from lance_conformance.server.golden.rules.access_rules import AccessRules
from lance_conformance.server.golden.state import Memory


class Specified(AccessRules):
    """All hooks together, as the document has them."""

    def __init__(self) -> None:
        self.memory = Memory()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} topics={len(self.memory.topics)}>"

    def error(self, code: int, words: str, details: dict[str, object], /) -> Reply:
        """An ErrorResponse is a JSON object."""
        body: dict[str, object] = {"code": code, "message": words}
        if details:
            body["details"] = details
        return Reply(0x40, 0xFF, json.dumps(body).encode())
