"""A deterministic simulation: the real code in a world where one seed decides everything.

`world` has threads that take turns, and time; `disk` and `mount` are a disk that forgets; `faults`
says what goes wrong; `model` knows what was promised; `plan` says what happens; `store` drives the
server's log; `run` carries a plan out and `checks` judges it; `shrink` makes a failing plan short;
`mutants` proves that faults are found. ``python -m tests.simulation --help`` replays a seed.
"""
