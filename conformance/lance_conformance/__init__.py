"""The LANCE conformance kit: proof, for any server, of what it does with the bytes of LWP.

The kit judges with its own eyes: it shares no code with the grammar, the SDK or the server.
Its packages, each importing only those before it:

* ``wire``: frames as bytes, a strict decoder and a lenient builder, without sockets
* ``dialect`` and ``spec``: which rules are in force, and what the document says
* ``engine``: one connection to a target, recorded byte by byte, under one deadline; what a suite
  of cases is; running them, reporting what came of it, and the self-test
* ``server``, ``client``, ``fluvio``, ``rustlog``: a suite each, with its cases, its golden programs
  and its mutants, which prove that the cases can tell right from wrong
"""

__version__ = "0.1.0"
