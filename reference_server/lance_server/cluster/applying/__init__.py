"""Applying: what comes of a record is a function of the records before it, and of nothing else.

No module here may ask a clock, a random source, the environment, a local setting or the order of
a set; a test looks for it. A failure of the disk stops applying and never changes a result.
"""
