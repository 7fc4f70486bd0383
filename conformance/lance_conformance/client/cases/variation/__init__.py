"""Cases that ask a rule again where a client may keep it only sometimes.

A client may be right for its first answer and not for the fortieth, for small batches and not for
large ones, on one kind of connection and not on another. Each module varies one axis or a few; its
cases are made from tables of rules and values.
"""
