"""Carrying out a plan for a slot with symbols that passes between clients."""

from collections import Counter
from typing import Final

from tests.journal.published import RefusedError
from tests.journal.qwp.world import Host as QwpHost
from tests.journal.qwp.world import Wire
from tests.journal.qwp.world import World as QwpWorld
from tests.simulation.faults import Fault
from tests.simulation.model import ViolationError
from tests.simulation.mount import Mount
from tests.simulation.ring.plan import RingPlan
from tests.simulation.ring.run import SLOT, RingResult, RingRun
from tests.simulation.slot.clients import GoWriter, Host, PythonWriter
from tests.simulation.slot.model import Row, SlotModel
from tests.simulation.slot.plan import SlotSettings
from websockets.protocol import State

from lance_sdk.errors import LanceError
from lance_sdk.journal import Journal, JournalConfig, NotYetDurable, SlotHasGap, SlotKind
from lance_sdk.journal._slot.scan import scan
from lance_sdk.journal._slot.symbol_file import NAME
from lance_sdk.journal.errors import SegmentsOverlap
from lance_sdk.journal.qwp import RowOptions, SymbolsLost, timestamp_nanos
from lance_sdk.journal.qwp.dictionary import SymbolDictionary, _frames, delta_of, open_dictionary
from lance_sdk.journal.qwp.writer import RowWriter

CLIENTS: Final = {"go": GoWriter, "python": PythonWriter}
_SYMBOLS: Final = 25
_SEGMENTS: Final = 40
_A_WHILE: Final = 1.0
_ALL: Final = 1 << 30


class SlotRun(RingRun):
    """Carries out a plan.

    Args:
        plan: what happens.

    Attributes:
        turns: how the turns of other clients ended.
    """

    def __init__(self, plan: RingPlan) -> None:
        super().__init__(plan)
        assert isinstance(plan.settings, SlotSettings)
        self.settings = plan.settings
        self.slot_model = self.model = SlotModel()
        self.turns: Counter[str] = Counter()
        self._dictionary: SymbolDictionary | None = None
        self._sending = False
        self._gives_up = False

    # Our sender --------------------------------------------------------------------------------

    def _config(self) -> JournalConfig:
        settings = self.plan.settings
        return JournalConfig(
            kind=SlotKind.QWP,
            segment_bytes=settings.segment_bytes,
            max_total_bytes=_SEGMENTS * settings.segment_bytes,
            durability=settings.durability,  # type: ignore[arg-type] - its name will do
            synced_before_trim=(NAME,),
            background=settings.background,
            accept_gaps=self._gives_up,
        )

    def _open(self, mount: Mount) -> Journal:
        """Open the slot; what others left unsynced and a loss of power took is given up."""
        self._sending = self._gives_up = False
        try:
            return super()._open(mount)
        except (SlotHasGap, SegmentsOverlap) as refusal:
            model = self.slot_model
            if not (model.passed or model.shuffled):
                raise
            self._gives_up = model.passed = True
            model.shuffled |= isinstance(refusal, SegmentsOverlap)
            self.turns[f"we parted or closed: {type(refusal).__name__}"] += 1
            return super()._open(mount)

    def _opened(self, journal: Journal, found: dict[int, bytes]) -> None:
        super()._opened(journal, found)
        self._dictionary = open_dictionary(journal)
        model, known = self.slot_model, len(self._dictionary)
        lost = {each for each in found.values() if delta_of(each)[0] > known}
        lost |= self._dictionary.unproven & {*found.values()}
        for each in lost - model.fragile - model.gone:
            raise ViolationError(f"the symbols of {model.rows[each]} are lost")
        model.mute |= lost

    def _row(self) -> Row:
        self.number += 1
        return Row(self.number, f"s{self.world.random.randrange(_SYMBOLS)}")

    def _append(self, journal: Journal, count: int, size: int) -> None:
        del size
        for _ in range(count):
            if not self._append_row(journal):
                break
        self.busy = False

    def _append_row(self, journal: Journal) -> bool:
        """Store a row as the sender does; return whether that went well."""
        assert self._dictionary is not None
        options = RowOptions(delta_frames=self.settings.delta)
        writer = RowWriter(options, self._dictionary, journal._limit)
        row = self._row()
        writer.add("t", {"s": row.symbol}, {"v": row.number}, timestamp_nanos(row.number))
        writer.seal()
        try:
            payload = writer.front()
        except OSError as error:
            if self._trouble() or self.troubled:
                return False
            raise ViolationError(f"a healthy disk: {error}") from None
        assert payload is not None
        self.slot_model.offered(payload, row)
        try:
            fsn = journal.append(payload)
        except NotYetDurable as late:
            writer.stored()
            self.model.appended(late.fsn, payload)
            return False
        except LanceError as error:
            self._refused(error)
            return False
        writer.stored()
        self.result.appended += 1
        self.model.appended(fsn, payload)
        if self.plan.settings.durability == "append":
            self.model.promised = max(self.model.promised, fsn)
        return True

    def do_drain(self, share: float) -> None:
        """Let our transport send to a host that acknowledges some of it."""
        journal = self.journal
        if journal is None or self._sending:
            return
        self._sending = True
        most = _ALL if share == 1.0 else int(share * 12)

        def work() -> None:
            self._send(journal, most)
            self._sending = False

        self._thread(work)

    def _send(self, journal: Journal, most: int) -> None:
        left = most
        hosts: dict[int, Host] = {}

        def take(wire: Wire) -> None:
            nonlocal left
            message = wire.messages[-1]
            hosts.setdefault(wire.number, Host(self.slot_model)).read(message)
            left -= message in self.model.tried
            if left >= 0 and wire.protocol.state is State.OPEN:
                self.slot_model.sent(message)
                wire.ok()

        assert self._dictionary is not None
        world = QwpWorld(QwpHost(on_message=take), journal=journal, dictionary=self._dictionary)
        try:
            world.run(_A_WHILE)
        except (OSError, LanceError):
            if not (self._trouble() or self.troubled or journal._state.ended):
                raise
        self._judge_failure(journal, world.outbox.failure)

    def _judge_failure(self, journal: Journal, failure: LanceError | None) -> None:
        if isinstance(failure, SymbolsLost):
            # Somebody gives this frame up, as `lwp sf trim` does.
            payload = self.model.frames[failure.fsn]
            if payload not in self.slot_model.mute:
                raise ViolationError(str(failure))
            before = {each for fsn, each in self.model.frames.items() if fsn < failure.fsn}
            if before <= self.slot_model.gone:
                self.slot_model.gone.add(payload)
                self._quietly(lambda: journal.ack(failure.fsn))
        elif failure is not None and not (self._trouble() or self.troubled):
            raise ViolationError(f"the sender halted: {failure}")

    def do_close(self) -> None:
        """Close it in order; what is drained leaves nothing that another client would send."""
        journal = self.journal
        if journal is None:
            return
        self._finish_append()
        drained = journal.acked_fsn >= journal.next_fsn - 1
        sound = not (self._trouble() or self.troubled)
        crashes = self.result.crashes
        super().do_close()
        sound &= not self._trouble() and self.result.crashes == crashes
        if self.journal is None and drained and sound:
            left = {each.name: file.content[:4] for each, file in self.disk.files(SLOT)}
            kept = [n for n in left if (n.endswith(".sfa") and left[n] == b"SF01") or n == NAME]
            if kept and journal.acked_fsn >= journal.next_fsn - 1:
                raise ViolationError(f"a drained slot keeps {kept}")

    # Others ------------------------------------------------------------------------------------

    def do_pass(
        self, client: str, rows: int, sent: int, *, closes: bool, stop: int | None, kind: str
    ) -> None:
        """Let a published client have the slot."""
        if self.journal is not None:
            return
        mount = self.mount = self._new_mount()
        mount.faults = [] if stop is None else [Fault("*", "*", stop, kind)]
        ended: list[str] = []

        def work() -> None:
            try:
                self._theirs(mount, client, rows, sent, closes=closes)
                ended.append("went well")
            except RefusedError as refused:
                ended.append(f"refused: {refused}")

        self.world.spawn(work)
        self._wait(lambda: bool(ended))
        self.turns.update(f"{client} {each}" for each in ended)
        if self.stopped is None and not self.world.errors:
            self._end_life()
            if self.disk.has_lost():
                self.model.lose_memory()

    def _theirs(self, mount: Mount, client: str, rows: int, sent: int, *, closes: bool) -> None:
        files = self._files(mount)
        files.make_folder(SLOT)
        model = self.slot_model
        model.pass_on(self._behind_damage())
        clock = lambda: self.world.wall_ns() // 1000  # noqa: E731
        theirs = CLIENTS[client](files, SLOT, self.plan.settings.segment_bytes, clock)
        model.bury(each for segment in theirs.ring for each in segment.payloads)
        host = Host(model)
        if client == "go" and self.settings.delta:
            sent = 0  # that it must not drain such a slot stands on the page
        # A watermark beyond the last frame, as a loss of power may leave it, stays there for their
        # next numbers: what they store under these counts as acknowledged, also for themselves.
        stale = theirs.stated() >= theirs.ring[-1].stop
        for _ in range(rows):
            row = self._row()
            payload = theirs.frame(row)
            model.offered(payload, row)
            if client == "python":
                model.leaning.add(payload)
            theirs.append(payload)
            if not stale:
                model.others.add(payload)
            if self.world.random.random() < 0.2:
                theirs.send(sent, host)
        theirs.send(sent, host)
        if closes:
            theirs.close()

    def _behind_damage(self) -> set[bytes]:
        """Return frames that only we find: they follow bytes that are not frames."""
        found: set[bytes] = set()
        for path, file in self.disk.files(SLOT):
            if path.name.endswith(".sfa"):
                data = bytes(file.content)
                for run in scan(memoryview(data)).runs[1:]:
                    found.update(_frames(data, run))
        return found

    def _finale(self) -> None:
        """See that everything arrives once nothing is in the way."""
        self.do_heal()
        self._wait()
        self._look_around()
        self.do_close()
        self._look_around()
        self.do_open()
        self._look_around()
        self._wait()
        for _ in range(1 + len(self.slot_model.mute)):
            self.do_drain(1.0)
            self._wait(lambda: not self._sending)
            self._look_around()
        left = self.slot_model.owed()
        if left:
            raise ViolationError(f"not sent are {sorted(self.slot_model.rows[x] for x in left)}")
        super()._finale()


def carry_out(plan: RingPlan) -> RingResult:
    """Carry out a plan."""
    return SlotRun(plan).carry_out()
