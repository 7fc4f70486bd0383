"""Tables and diagrams of the wire and disk formats, from the grammar."""

import inspect
from enum import IntEnum, IntFlag
from importlib import import_module
from typing import ClassVar

from sphinx.application import Sphinx
from sphinx.util.typing import OptionSpec

from lance_docs._base import Generated, block, heading, list_table, literal, prose
from lance_docs.formats.values import members
from lance_spec import vectors
from lance_spec.emit import back_ends
from lance_spec.emit._enums import named_values
from lance_spec.emit.docs import diagram, rst
from lance_spec.fluvio import apis
from lance_spec.grammar._vocab import FrameForm
from lance_spec.ir import families
from lance_spec.ir.nodes import Family, Message
from lance_spec.limits import PREFIX_SIZE

_SENDERS = {"client": "client", "server": "server", "both": "either side", "": "nobody: on disk"}


class MessageLayout(Generated):
    """The byte diagram and the field table of one message; the argument is its name."""

    required_arguments = 1

    def text(self) -> str:
        """Return diagram and table."""
        name = self.arguments[0]
        try:
            return layout(families.message(name))
        except KeyError as error:
            raise self.refuse(str(error.args[0])) from None


class Commands(Generated):
    """One section for every control command, in the order of their codes."""

    def text(self) -> str:
        """Return the sections."""
        chosen = [each for each in _lwp() if each.command is not None]
        return "".join(map(_command_section, sorted(chosen, key=_code)))


class RecordValues(Generated):
    """One section for every record type whose value has fields."""

    def text(self) -> str:
        """Return the sections."""
        chosen = [each for each in _lwp() if each.record_type is not None and each.fields]
        return "".join(_section(each, "^") for each in chosen)


class FamilyMessages(Generated):
    """Every message of a family, or those that an option names; the argument is the family."""

    required_arguments = 1
    option_spec: ClassVar[OptionSpec] = {"except": str.split, "only": str.split}

    def text(self) -> str:
        """Return one section for each message."""
        family = _family(self.arguments[0])
        if family is None:
            raise self.refuse(f"no family {self.arguments[0]}")
        names = {each.name for each in family.messages}
        chosen = set(self.options.get("only", names)) - set(self.options.get("except", ()))
        if unknown := {*self.options.get("only", ()), *self.options.get("except", ())} - names:
            raise self.refuse(f"{family.name} has no message {', '.join(sorted(unknown))}")
        return "".join(_section(each, "~") for each in family.messages if each.name in chosen)


class FamilyNames(Generated):
    """The named values of a family, each with its meaning; the argument is the family."""

    required_arguments = 1

    def text(self) -> str:
        """Return one section for each enumeration."""
        family = _family(self.arguments[0])
        if family is None:
            raise self.refuse(f"no family {self.arguments[0]}")
        return "".join(map(_names, named_values(family)))


class BackEnds(Generated):
    """Which forms of the grammar there are for which family."""

    sources = (back_ends,)

    def text(self) -> str:
        """Return a table with one row for each family."""
        found = back_ends.table(lambda name: len(vectors.load(name).tests))
        rows = [
            (back_ends.TITLES[family], *(_cell(cells[form]) for form in back_ends.COLUMNS))
            for family, cells in found.items()
        ]
        return list_table(("Family", *back_ends.COLUMNS), rows)


class FluvioRequests(Generated):
    """The requests of Fluvio's two servers."""

    sources = (apis,)

    def text(self) -> str:
        """Return a table with one row for each request."""
        header = ("Server", "Key", "Request", "Versions", "Message", "Answered with")
        return list_table(header, map(_request_row, apis.APIS), widths="8 8 20 10 24 30")


class ModuleText(Generated):
    """What a module's docstring says after its first line; the argument is the module."""

    required_arguments = 1

    def text(self) -> str:
        """Return the text."""
        module = import_module(self.arguments[0])
        return inspect.cleandoc(module.__doc__ or "").partition("\n\n")[2] + "\n"


class Frames(Generated):
    """What each kind of frame is for."""

    def text(self) -> str:
        """Return a table with one row for each kind."""
        forms = families.families()["lwp"].frames
        header = ("Kind", "Flag", "Sent by", "What it is for", "Fields in use", "Section")
        return list_table(header, map(_frame_row, forms), widths="12 8 10 30 25 15")


def layout(message: Message) -> str:
    """Return the byte diagram, as a picture where the output can show one, and the field table."""
    if not message.fields:
        return "The payload is empty.\n"
    picture = block(
        "raw", f'<div class="lance-diagram">{diagram.svg_diagram(message)}</div>', "html"
    )
    letters = block("code-block", diagram.ascii_diagram(message), "text")
    plain = "\n.. only:: not html\n" + "\n".join(f"   {line}" for line in letters.splitlines())
    return f"{picture}\n{plain}\n\n{rst.table(message)}\n"


def _lwp() -> tuple[Message, ...]:
    return families.families()["lwp"].messages


def _family(name: str) -> Family | None:
    return families.families().get(name) or families.composed().get(name)


def _names(kind: type[IntEnum | IntFlag]) -> str:
    title = heading(kind.__name__, "~")
    told = prose(inspect.cleandoc(kind.__doc__ or ""))
    return f"{title}\n{told}\n\n{members(kind)}\n"


def _cell(text: str) -> str:
    """Say that there is a file; which one follows from the family's name."""
    return "yes" if "/" in text else text


def _request_row(api: apis.Api) -> tuple[str, ...]:
    answers = dict.fromkeys(api.responses.values())
    shown = ", ".join(map(literal, answers))
    first, last = api.versions
    return (
        api.server.upper(),
        str(api.key),
        f"{api.name} (a stream)" if api.stream else api.name,
        f"{first} to {last}" if first != last else str(first),
        literal(api.request),
        shown,
    )


def _code(message: Message) -> int:
    assert message.command is not None
    return int(message.command)


def _command_section(message: Message) -> str:
    return _section(message, "~")


def _section(message: Message, underline: str) -> str:
    others = [each for each in message.ambiguities if each != message.section]
    seen = f" See {', '.join(others)}." if others else ""
    said = f"{message.doc}. {_carrier(message)} {message.section}.{seen}"
    return f"{heading(message.name, underline)}\n{said}\n\n{layout(message)}"


def _carrier(message: Message) -> str:
    if message.command is not None:
        return f"Command {literal(f'0x{message.command:02X}')}, sent by the {message.sender}."
    if message.record_type is not None:
        return f"Record type {literal(f'0x{message.record_type:02X}')}."
    return ""


def _frame_row(form: FrameForm) -> tuple[str, ...]:
    seen = f" ({', '.join(form.ambiguities)})" if form.ambiguities else ""
    return (
        form.kind.title(),
        literal(f"0x{form.flag:02X}"),
        _SENDERS[form.sender],
        f"{form.doc}{seen}.",
        ", ".join(map(literal, _fields_in_use(form))) or "none",
        form.section,
    )


def _fields_in_use(form: FrameForm) -> list[str]:
    """Return what tells one frame of this kind from another; the first twelve bytes do not."""
    header = families.message("Header")
    return [
        each.name
        for each in header.fields
        if (each.offset or 0) >= PREFIX_SIZE and each.name not in form.zero_fields
    ]


def setup(app: Sphinx) -> None:
    """Register the directives."""
    app.add_directive("lance-message", MessageLayout)
    app.add_directive("lance-commands", Commands)
    app.add_directive("lance-record-values", RecordValues)
    app.add_directive("lance-family", FamilyMessages)
    app.add_directive("lance-family-names", FamilyNames)
    app.add_directive("lance-back-ends", BackEnds)
    app.add_directive("lance-fluvio-requests", FluvioRequests)
    app.add_directive("lance-module-text", ModuleText)
    app.add_directive("lance-frames", Frames)
