"""Cases that ask a rule again where it may be kept only sometimes.

A rule may hold for the first frame of a connection and not for the thousandth, for small frames and
not for large ones, for small numbers and not for large ones. Each module varies one axis; its cases
are made from tables of rules and values.
"""
