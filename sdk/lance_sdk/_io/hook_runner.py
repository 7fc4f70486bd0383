"""User hooks, called so that nothing they do reaches the stream."""

from collections.abc import Sequence
from typing import Any

from lance_sdk.hooks import Hooks
from lance_sdk.logs import HOOKS


class HookRunner:
    """Calls every hook in turn; what one raises is logged the first time, then counted.

    Args:
        hooks: the ``hooks`` option.

    Attributes:
        failures: how often a hook raised.
    """

    def __init__(self, hooks: Hooks | Sequence[Hooks] = ()) -> None:
        self._hooks = (hooks,) if isinstance(hooks, Hooks) else tuple(hooks)
        self._told: set[tuple[int, str]] = set()
        self.failures = 0

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def __repr__(self) -> str:
        return f"<HookRunner {self._hooks} failures={self.failures}>"

    def call(self, name: str, event: Any) -> None:
        """Call a method of every hook; no lock may be held."""
        for number, hook in enumerate(self._hooks):
            try:
                getattr(hook, name)(event)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # noqa: BLE001 - user code may raise anything
                self._failed(number, name, error)

    def _failed(self, number: int, name: str, error: BaseException) -> None:
        self.failures += 1
        if (number, name) in self._told:
            return
        self._told.add((number, name))
        HOOKS.error(
            "%s.%s raised; it is called again, but this is logged once",
            type(self._hooks[number]).__name__,
            name,
            exc_info=error,
        )
