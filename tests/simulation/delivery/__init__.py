"""A producer and consumers of one topic in simulated time, and a model of their server.

The real clients run over a network that breaks and falls silent, with a server that crashes,
refuses, speaks another dialect, or loses a topic; what was promised is checked::

    python -m tests.simulation.delivery --count 1000
    python -m tests.simulation.delivery --seed 17
"""
