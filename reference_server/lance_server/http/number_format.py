"""Numbers as people read them."""

from typing import Final

_BINARY: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_DECIMAL: Final = ("", "k", "M", "G", "T")


def size(value: float) -> str:
    """Return a number of bytes."""
    number, unit = _scaled(value, 1024, _BINARY)
    return f"{number} {unit}"


def count(value: float) -> str:
    """Return a number of things."""
    number, unit = _scaled(value, 1000, _DECIMAL)
    return f"{number} {unit}".rstrip() if unit else number


def exact(value: int) -> str:
    """Return a whole number with its thousands apart."""
    return f"{value:,}".replace(",", "\u202f")


def duration(seconds: float) -> str:
    """Return a time, with its two largest units."""
    whole = int(seconds)
    parts = [(whole // 86_400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "min")]
    parts.append((whole % 60, "s"))
    while len(parts) > 1 and not parts[0][0]:
        parts.pop(0)
    return " ".join(f"{number} {unit}" for number, unit in parts[:2])


def milliseconds(value: float) -> str:
    """Return a latency."""
    return f"{value:.2f} ms" if value < 10 else f"{value:.0f} ms"


def _scaled(value: float, step: int, units: tuple[str, ...]) -> tuple[str, str]:
    place = 0
    while abs(value) >= step and place < len(units) - 1:
        value, place = value / step, place + 1
    return (f"{value:.0f}" if not place or value >= 100 else f"{value:.1f}"), units[place]
