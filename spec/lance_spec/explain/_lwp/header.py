"""Judging the fields of a header against each other, its checksums and its dialect."""

from dataclasses import dataclass

from lance_spec.dialect import DIALECTS, Dialect
from lance_spec.enums import Command, Flag
from lance_spec.explain._model import Verdict
from lance_spec.explain._values import name, size
from lance_spec.explain._walk import Walk
from lance_spec.grammar._vocab import FrameForm
from lance_spec.ir.families import families

_GUARDED_BYTES = 8


@dataclass(slots=True)
class ParsedHeader:
    """A header that was read as a whole.

    Attributes:
        fields: its fields.
        guarded: the bytes that the header CRC covers.
        payload: what follows, as far as it is there.
        forms: the kinds of frame its flags name; one, if all is well.
        dialect: the dialect whose checksum it has, or None.
    """

    fields: Walk
    guarded: memoryview
    payload: memoryview
    forms: tuple[FrameForm, ...]
    dialect: Dialect | None

    @classmethod
    def of(cls, fields: Walk, data: memoryview) -> "ParsedHeader":
        """Return the header that was read from ``data``."""
        guarded = data[fields.start : fields.start + _GUARDED_BYTES]
        stated = fields.number("header_crc")
        dialect = next((d for d in DIALECTS.values() if d.checksum(guarded) == stated), None)
        payload = data[fields.end : fields.end + fields.number("payload_length")]
        return cls(fields, guarded, payload, kinds(fields.number("flags")), dialect)

    @property
    def readable(self) -> bool:
        """Whether the frame's end can be told: it is one, and of a size that is allowed."""
        wrong = {self.fields.rows[field].verdict for field in ("magic", "version")}
        return "fault" not in wrong and self.fields.number("payload_length") <= self.limit

    @property
    def limit(self) -> int:
        """The largest payload in bytes that the dialect, or any, allows (AMB-32)."""
        dialects = [self.dialect] if self.dialect else DIALECTS.values()
        return max(each.max_payload for each in dialects)

    @property
    def broken(self) -> Verdict:
        """What an odd header is: a fault where the dialect is strict, a note elsewhere."""
        return "note" if self.dialect and not self.dialect.strict else "fault"

    def judge(self) -> None:
        """Put a verdict on every field that can be checked."""
        self._judge_crc()
        self._judge_flags()
        if self.fields.number("reserved"):
            self.fields.judge("reserved", self.broken, "expected 0 (AMB-33)")
        for form in self.forms[:1]:
            self._judge_form(form)
        self._judge_length()
        self._judge_payload_crc()

    def _judge_crc(self) -> None:
        if self.dialect:
            found = f"{self.dialect.checksum.name}, dialect {self.dialect.name}"
            self.fields.judge("header_crc", "ok", found)
            return
        wanted = (
            f"0x{d.checksum(self.guarded):08x} ({d.checksum.name})" for d in DIALECTS.values()
        )
        self.fields.judge("header_crc", "fault", f"expected {' or '.join(wanted)}")

    def _judge_flags(self) -> None:
        flags = self.fields.number("flags")
        if flags & Flag.RESERVED:
            self.fields.judge("flags", self.broken, "bit 7 must be 0 (AMB-33)")
        elif len(self.forms) != 1:
            count = "more than one kind" if self.forms else "no kind"
            self.fields.judge("flags", "note", f"{count} of frame (AMB-33)")
        elif flags & Flag.ENCRYPTED:
            self.fields.judge("flags", "note", "encryption is not defined (AMB-33)")

    def _judge_form(self, form: FrameForm) -> None:
        for field in form.zero_fields:
            if self.fields.number(field):
                self.fields.judge(field, "note", f"expected 0 in a frame of kind {form.kind}")
        batch_id = self.fields.number("batch_id")
        if form.payload == "command":
            named = name(Command, batch_id)
            found = f"command 0x{batch_id:02x} {named or 'without a name'}"
            self.fields.judge("batch_id", "ok" if named else "note", found)
        elif form.payload == "records" and not batch_id:
            self.fields.judge("batch_id", self.broken, "expected a batch id other than 0 (AMB-33)")

    def _judge_length(self) -> None:
        length, there = self.fields.number("payload_length"), len(self.payload)
        if length > self.limit:
            found = f"expected at most {size(self.limit)} (AMB-32)"
            self.fields.judge("payload_length", "fault", found)
        elif there < length:
            found = f"{size(length)} should follow, {size(there)} do"
            self.fields.judge("payload_length", "fault", found)

    def _judge_payload_crc(self) -> None:
        stated, length = self.fields.number("payload_crc"), self.fields.number("payload_length")
        if not length:
            if stated:
                self.fields.judge("payload_crc", "note", "expected 0 without a payload (AMB-33)")
        elif len(self.payload) == length:
            self._compare_payload_crc(stated)

    def _compare_payload_crc(self, stated: int) -> None:
        dialects = [self.dialect] if self.dialect else list(DIALECTS.values())
        sums = {each.checksum.name: each.checksum(self.payload) for each in dialects}
        matching = [algorithm for algorithm, value in sums.items() if value == stated]
        if matching:
            self.fields.judge("payload_crc", "ok", matching[0])
            return
        wanted = " or ".join(f"0x{value:08x} ({algorithm})" for algorithm, value in sums.items())
        self.fields.judge("payload_crc", "fault", f"expected {wanted}")


def kinds(flags: int) -> tuple[FrameForm, ...]:
    """Return the kinds of frame that flags name, the published server's choice first."""
    order = ("CONTROL", "KEEPALIVE", "ACK", "BACKPRESSURE", "INGEST")
    named = [form for form in families()["lwp"].frames if flags & form.flag]
    return tuple(sorted(named, key=lambda form: order.index(form.kind)))
