"""A deterministic simulation: the real code in a world where one seed decides everything.

`world` has threads that take turns, and time; `disk` and `mount` are a disk that forgets; `faults`
says what goes wrong; `model` knows what was promised; `shrink` makes a failing plan short;
`mutants` proves that faults are found. Each folder is one part of the product in that world, with
the same modules: `plan` says what happens, `run` carries it out, `planted` holds the faults.
``python -m tests.simulation --help`` replays a seed.
"""
