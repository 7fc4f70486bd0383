"""Client mode: a scripted server that misbehaves, and a driver around the client under test.

* ``scripted``: the server; its script, as data, the well-behaved server that a script departs from,
  its connections, every frame that a client sends, and the rules it must keep
* ``operations``: what the client is told to do
* ``driver``, ``process``: the client under test, in this process or in one of its own
* ``client_case``: one case; ``evaluation``: what an outcome is worth
* ``cases``, and ``golden`` and ``mutants``: clients to prove them with
"""
