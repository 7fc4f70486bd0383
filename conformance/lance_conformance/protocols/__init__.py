"""Protocols the kit asks about: what one suite of questions is, and the suites there are.

* ``questions``: how a case is declared
* ``suite``: everything a protocol brings along; runs, reports and self-test know nothing else of it
* ``conversation``: one case's connections, controls and checks
* ``mutation``, ``nulls``: servers that are wrong in one way, and in every way
* ``known``: the suites by name
"""
