"""How the server touches the disk: one seam, and the backends behind it."""
