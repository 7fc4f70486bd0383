"""Client mode: a scripted server that misbehaves, and a driver around the client under test.

* ``script``: what the server does, as data; ``operations``: what the client is told to do
* ``model``: the well-behaved server that a script departs from; ``stage``: its sockets
* ``sighting``, ``rules``: every frame that a client sends, and the rules it must keep
* ``driver``, ``process``: the client under test, in this process or in one of its own
* ``play``: one case; ``judging``: what an outcome is worth
* ``cases``: the questions; ``golden``, ``mutants``: clients to prove them with
"""
