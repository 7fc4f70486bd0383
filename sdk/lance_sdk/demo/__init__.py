"""``lwp demo``: real records through producer, server, disk and consumer, and the kit's verdict."""
