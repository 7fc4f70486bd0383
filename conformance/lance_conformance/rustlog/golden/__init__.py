"""A small RustLog server that does everything right; every rule of it is a hook.

It has a codec of its own, so that a mistake in the kit's cannot hide.
"""
