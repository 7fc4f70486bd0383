"""A small server that keeps every rule, in either dialect, to be broken on purpose.

It has a codec of its own: an oracle that shared the kit's could not see a fault in it.
"""
