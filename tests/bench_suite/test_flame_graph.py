"""Stacks become a picture."""

import xml.etree.ElementTree as ET

import pytest
from bench.profiles.flame_graph import shares, svg

_STACKS = [
    "run (<frozen runpy>:65);main (lance_server/cli.py:7);take (lance_server/session.py:1) 60",
    "take (lance_server/session.py:1);run (loop.c:9);gather_run (lance_spec/_accelerator.so) 30",
    "_work (lance_server/scheduling.py:7);pthread_cond_wait (libc.so.6) 500",
    "read (libc.so.6);0x7f00 (libc.so.6) 10",
]


def test_waiting_is_no_work() -> None:
    """Who waits for a job is not counted, however often it was seen."""
    assert not any("pthread" in name or "_work" in name for name in shares(_STACKS))


def test_a_function_has_its_share_with_what_it_calls() -> None:
    """60 and 30 of 100 samples."""
    assert shares(_STACKS)["take (lance_server/session.py:1)"] == pytest.approx(0.9)


def test_what_only_starts_the_program_is_left_out() -> None:
    """Every stack would begin with it."""
    assert not any("runpy" in name or "cli.py" in name for name in shares(_STACKS))


def test_of_compiled_code_the_innermost_name_is_kept() -> None:
    """Addresses have none."""
    assert shares(_STACKS)["read (libc.so.6)"] == pytest.approx(0.1)
    assert shares(_STACKS)["gather_run (_accelerator.so)"] == pytest.approx(0.3)


def test_the_picture_has_a_box_for_each_function() -> None:
    """With its name and its share for who points at it."""
    root = ET.fromstring(svg(_STACKS, "A server & its work"))
    titles = [each.text for each in root.iter("{http://www.w3.org/2000/svg}title")]
    assert "take (lance_server/session.py:1): 90.0%" in titles
    assert len(titles) == 3


def test_a_program_that_only_waited_makes_no_picture() -> None:
    """It is said instead of drawing nothing."""
    with pytest.raises(ValueError, match="nothing was recorded"):
        svg(_STACKS[2:3], "A server")
