"""Operators: one wrongness, applied to each place of the golden server where it makes sense.

A mutant that was written by hand is wrong always. These are wrong only sometimes: after some
frames, above a size, in high bits, beyond a number, the second time, or after some seconds.
"""
