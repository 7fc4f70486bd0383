"""What a clone found in the directory is as durable as what it fetched."""

from random import Random

from tests.simulation.faults import Fault
from tests.simulation.test_disk import ROOT, content, mounted

from lance_server.cluster.applying.mark import FOLDER
from lance_server.cluster.copies.clone import clone
from lance_server.log.copies import Offer

NAME = f"{FOLDER}/file"


class Equal:
    """A node that has what is here."""

    def take(self) -> Offer:
        """Offer a file, and an empty one."""
        return Offer("1", "log", {NAME: 4, "segments/0/empty": 0})

    def piece(self, *_: object) -> None:
        """Answer that the piece is equal."""

    def end(self, copy: str) -> None:
        """Forget the copy."""


def test_what_a_failed_sync_left_in_memory_survives_a_loss_of_power() -> None:
    """Pieces that a clone keeps are written again, and synced."""
    for seed in range(40):
        disk, mount = mounted()
        mount.make_dir(ROOT / FOLDER)
        fd = mount.open(ROOT / NAME, create=True)
        mount.write(fd, b"kept", 0)
        mount.faults = [Fault("sync", "*", 0, "EIO")]
        try:
            mount.sync(fd)
        except OSError:
            clone(mount, ROOT, Equal())
        disk.power(Random(seed))
        assert content(disk, NAME) == b"kept"
