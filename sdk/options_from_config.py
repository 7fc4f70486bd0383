"""Writes the keywords of clients and store-and-forward senders, from the fields of their settings.

    python sdk/options_from_config.py [--check]

An option is declared once, as a field of a settings class. The written modules are committed, so
that type checkers and editors find them; a test holds them together.
"""

import ast
import sys
from pathlib import Path
from typing import Final

from sync_from_async import formatted, keep_current

_SDK: Final = Path(__file__).parent / "lance_sdk"
SOURCE: Final = _SDK / "config.py"
WRITTEN: Final = _SDK / "options.py"
SENDER_SOURCE: Final = _SDK / "journal" / "_sending" / "config.py"
SENDER_WRITTEN: Final = _SDK / "journal" / "lwp" / "options.py"
_APART: Final = "values"
"""The option of a producer that its overloads name themselves."""
_HEAD: Final = '''# Written by sdk/options_from_config.py from lance_sdk/config.py: change that one.
"""The keyword arguments of the clients, for type checkers and editors.

They are the fields of the classes in `lance_sdk.config`.
"""

'''
_EXPORTED: Final = (
    '\n\n__all__ = ["ClientOptions", "ConsumerOptions", "ProducerOptions", "SendOptions"]\n'
)
_SENDER_ARGUMENTS: Final = {"path", "journal"}
"""Fields that are arguments of a store-and-forward sender's own."""
_SENDER_HEAD: Final = '''# Written by sdk/options_from_config.py from ForwardConfig: change that.
"""The keyword arguments of a store-and-forward sender over LWP, for type checkers and editors.

They are fields of `ForwardConfig`, and those of `lance_sdk.config.ClientConfig`.
"""

from pathlib import Path

from lance_sdk.journal._sending.config import InitialConnect
from lance_sdk.journal._sending.error_queue import ErrorHandler
from lance_sdk.journal._sending.outbox import OutboxLimits
from lance_sdk.journal.types import DrainerListener
from lance_sdk.options import ClientOptions

__all__ = ["SenderOptions"]
'''


def options() -> str:
    """Return the text of the module of options that belongs to the settings."""
    source = SOURCE.read_text()
    tree = ast.parse(source)
    client, producer, consumer = (
        _fields(source, f"{kind}Config") for kind in ("Client", "Producer", "Consumer")
    )
    values = {_APART: producer.pop(_APART)}
    classes = (
        _keywords("Client", "Client", "TypedDict", client),
        _keywords("Send", "Producer", "ClientOptions", producer, apart=" without ``values=``"),
        _keywords("Producer", "Producer", "SendOptions", values),
        _keywords("Consumer", "Consumer", "ClientOptions", consumer),
    )
    imports = ast.get_source_segment(source, next(n for n in tree.body if isinstance(n, ast.If)))
    head = (
        "from collections.abc import Callable, Sequence\nfrom datetime import datetime\n"
        "from typing import TYPE_CHECKING, Literal, TypedDict\n\n"
        "from lance_sdk._api.arguments.unit_parsing import Duration\n"
        "from lance_sdk.config import Path, RetryPolicy, Token\nfrom lance_sdk.hooks import Hooks\n"
        "from lance_spec.dialect import Dialect\n\n"
    )
    return formatted(_HEAD + head + f"{imports}{_EXPORTED}" + "".join(classes), "format")


def sender_options() -> str:
    """Return the text of the module of a sender's options that belongs to the settings."""
    left_out = _fields(SOURCE.read_text(), "ClientConfig").keys() | _SENDER_ARGUMENTS
    fields = _fields(SENDER_SOURCE.read_text(), "ForwardConfig")
    own = {name: annotation for name, annotation in fields.items() if name not in left_out}
    written = _keywords("Sender", "Forward", "ClientOptions", own)
    told = ("`Sender`; see `lance_sdk.config.ForwardConfig`", "a sender; see `ForwardConfig`")
    return formatted(_SENDER_HEAD + written.replace(*told), "format")


def _fields(source: str, name: str) -> dict[str, str]:
    """Return the annotation of each field, by its name, in the order of the class."""
    body = ast.parse(source).body
    settings = next(n for n in body if isinstance(n, ast.ClassDef) and n.name == name)
    return {
        node.target.id: ast.get_source_segment(source, node.annotation) or ""
        for node in settings.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


def _keywords(name: str, kind: str, base: str, fields: dict[str, str], apart: str = "") -> str:
    """Return the source of one class of keywords."""
    client = "Producer" if name == "Send" else name
    told = f'    """Keywords of `{client}`{apart}; see `lance_sdk.config.{kind}Config`."""\n\n'
    lines = "".join(f"    {field}: {annotation}\n" for field, annotation in fields.items())
    return f"\n\nclass {name}Options({base}, total=False):\n{told}{lines}"


if __name__ == "__main__":
    sys.exit(keep_current({WRITTEN: options(), SENDER_WRITTEN: sender_options()}))
