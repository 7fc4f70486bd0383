"""The protocol core: no clock, no random source, no socket, no thread, no task.

Rules that every module here keeps:

1. Time comes in as ``now`` (seconds of a monotonic clock), randomness as a `RandomSource`.
2. No method blocks, awaits or logs, and none raises because of what a peer sent: that ends
   up in the connection's fault, and from there in the session's events.
3. All methods of one core are called under one lock, or from one task; the core takes none.
4. Outcomes are settled here and announced by the driver, so no user code runs in here.
"""
