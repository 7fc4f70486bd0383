"""A small SC and SPU that keep every rule, to be broken on purpose.

They have a codec of their own: an oracle that shared the kit's could not see a fault in it.
"""
