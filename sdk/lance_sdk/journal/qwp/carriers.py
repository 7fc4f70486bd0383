"""Making carriers: each slot has its own dictionary, which its sender shares."""

from weakref import WeakKeyDictionary

from lance_sdk.journal._journal import Journal
from lance_sdk.journal.outbox import Outbox
from lance_sdk.journal.qwp.carrier import QwpCarrier
from lance_sdk.journal.qwp.dictionary import SymbolDictionary, open_dictionary
from lance_sdk.journal.qwp.settings import QwpSettings


class CarrierMaker:
    """A `lance_sdk.journal.transport.CarrierFactory` for QWP.

    Args:
        settings: how the carriers connect.
    """

    def __init__(self, settings: QwpSettings) -> None:
        self._settings = settings
        self._dictionaries: WeakKeyDictionary[Journal, SymbolDictionary] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"<CarrierMaker {len(self._dictionaries)} slots>"

    def __call__(self, outbox: Outbox) -> QwpCarrier:
        """Make the carrier of an outbox."""
        return QwpCarrier(outbox, self._settings, self.dictionary(outbox.journal))

    def dictionary(self, journal: Journal) -> SymbolDictionary:
        """Return the dictionary of a journal that is open.

        Raises:
            OSError: the dictionary cannot be read.
        """
        found = self._dictionaries.get(journal)
        if found is None:
            found = self._dictionaries[journal] = open_dictionary(journal)
        return found
