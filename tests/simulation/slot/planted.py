"""Planted faults of slots with symbols that pass between clients."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tests.simulation.mutants import Mutant, Patch, Search, always, nothing
from tests.simulation.slot import run
from tests.simulation.slot.plan import make_plan

from lance_sdk.journal._slot import snapshot, storage
from lance_sdk.journal._slot.other_writers import WriterCheck
from lance_sdk.journal.qwp import dictionary
from lance_sdk.journal.qwp._connection import exchange

SLOT: Final = Search(make_plan, run.carry_out, Path(__file__).with_name("matrix.json"))


def _believing(_: Any) -> Callable[..., WriterCheck]:
    """Return a check that believes our side files whoever was there."""
    return lambda *_: WriterCheck()


def _growing(right: Any) -> Callable[..., Any]:
    """Return an opening after which symbols are added whatever was lost."""

    def open_dictionary(journal: Any) -> Any:
        opened = right(journal)
        opened.grows = True
        return opened

    return open_dictionary


def _forgetting(right: Any) -> Callable[..., Any]:
    """Return an opening that proves every frame."""

    def open_dictionary(journal: Any) -> Any:
        opened = right(journal)
        opened.unproven = frozenset()
        return opened

    return open_dictionary


def _all_acknowledged(right: Any) -> Callable[..., Any]:
    """Return an order of segments that needs no watermark to give up what our manifest gave up."""
    return lambda segments, manifest, _: right(segments, manifest, 1 << 60)


SLOT_MUTANTS: Final = (
    Mutant("the dictionary is not synced with its frames",
           (Patch(storage.DiskSlot, "_sync_beside", nothing),), (), ("delta",)),
    Mutant("a dictionary that lost its end counts as whole",
           (Patch(dictionary, "_holds", always(True)), Patch(dictionary, "_needed", always(0))),
           (), ("delta",)),
    Mutant("symbols are added although some are lost",
           (Patch(run, "open_dictionary", _growing),), (), ("delta",)),
    Mutant("frames behind damage are sent whoever had the dictionary",
           (Patch(run, "open_dictionary", _forgetting),), ("passed",), ("delta",)),
    Mutant("a dictionary that a failed sync left in memory is believed",
           (Patch(dictionary, "_write_again", nothing),), (), ("delta",)),
    Mutant("frames are sent with whatever symbols there are",
           (Patch(exchange.Exchange, "_teach", always(True)),), (), ("delta",)),
    Mutant("a host that learned another client's symbols is not taught ours again",
           (Patch(dictionary.SymbolDictionary, "agrees", always(True)),), ("passed",)),
    Mutant("our manifest and watermark count although another client was there",
           (Patch(snapshot, "check_writers", _believing),
            Patch(snapshot, "order_segments", _all_acknowledged)), ("passed",)),
    Mutant("a drained slot keeps its segments",
           (Patch(storage.DiskSlot, "_leave_nothing", nothing),)),
    Mutant("a drained slot is opened with its frames and a new dictionary",
           (Patch(dictionary, "_payloads_of", always(())),), (), ("delta",)),
)  # fmt: skip
