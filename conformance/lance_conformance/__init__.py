"""The LANCE conformance kit: proof, for any server, of what it does with the bytes of LWP.

The kit judges with its own eyes: it shares no code with the grammar, the SDK or the server.
Its floors, each importing only those before it:

* ``wire``: frames as bytes, a strict decoder and a lenient builder, without sockets
* ``dialect`` and ``spec``: which rules are in force, and what the document says
* ``peer``, and of ``protocols`` what all of them share: one conversation with a target, recorded
  byte by byte, under one deadline; what a suite of questions is
* ``cases``: the questions about LWP; those about other protocols are in ``protocols``
* ``run`` and ``report``: asking them, and telling what came of it
* ``golden``, ``mutants`` and ``selftest``: proof that the questions can tell right from wrong
"""

__version__ = "0.1.0"
