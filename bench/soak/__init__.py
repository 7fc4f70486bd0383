"""Server, producer and consumer at full rate for minutes: does any of them grow?

``python -m bench.soak [--minutes 10]``
"""
