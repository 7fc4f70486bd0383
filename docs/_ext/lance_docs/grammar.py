"""Tables and diagrams of the wire and disk formats, from the grammar."""

from collections.abc import Collection
from typing import ClassVar

from sphinx.application import Sphinx
from sphinx.util.typing import OptionSpec

from lance_docs._base import Generated, block, heading, list_table, literal, prose
from lance_spec import families
from lance_spec.emit import diagram, rst
from lance_spec.grammar._vocab import FrameForm
from lance_spec.ir import Family, Message
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


class OtherFamilies(Generated):
    """Every message of every family but LWP, without those that the option names."""

    option_spec: ClassVar[OptionSpec] = {"except": str.split}

    def text(self) -> str:
        """Return one section for each family, and in it one for each message."""
        left_out = self.options.get("except", [])
        if unknown := set(left_out) - set(families.messages()):
            raise self.refuse(f"no message {', '.join(sorted(unknown))} to leave out")
        others = [each for each in families.families().values() if each.name != "lwp"]
        return "".join(_family(each, left_out) for each in others)


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


def _family(family: Family, left_out: Collection[str]) -> str:
    title = family.doc.partition(":")[0]
    shown = (each for each in family.messages if each.name not in left_out)
    sections = "".join(_section(each, "~") for each in shown)
    return f"{heading(title, '-')}\n{prose(family.doc)}\n{sections}"


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
    app.add_directive("lance-other-families", OtherFamilies)
    app.add_directive("lance-frames", Frames)
