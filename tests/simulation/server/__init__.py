"""The whole server in the simulated world: listeners, connections, sessions, memory and the log.

What runs is the real `Server` with its connections and listeners, in an event loop whose time is
simulated, on the simulated disk. Its peers are simulated: they pipeline, stall, stop reading, send
half a frame, vanish without a word, and come back::

    python -m tests.simulation --server --count 200
    python -m tests.simulation --server --seed 17
"""
