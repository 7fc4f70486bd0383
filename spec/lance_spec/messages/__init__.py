"""Codecs generated from the grammar.

Of LANCE itself: `lwp` crosses connections, `engine` and `store_forward` lie on disk. Of systems
that LANCE speaks to: `fluvio`, `rustlog`, `qwp`; their messages nest.
"""
