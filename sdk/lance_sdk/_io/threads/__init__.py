"""The sync driver: a thread and its sockets."""
