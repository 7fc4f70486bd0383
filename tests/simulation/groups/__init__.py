"""Consumer groups in a simulated world: time, network, processes and disks that one seed decides.

What runs is the real thing: members with their readers, and a coordinator's conversations and
groups. Simulated are the clock, the connections between them, the server, and what the offset
store takes its time for. A run is a plan of events; a plan that fails is shrunk and can be
replayed by its seed::

    python -m tests.simulation.groups --count 200
    python -m tests.simulation.groups --seed 17
"""
