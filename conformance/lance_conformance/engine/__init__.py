"""The conformance engine: suites, cases, connections, runs, reports and the self-test.

It knows no protocol: each protocol is a folder beside it (``server`` and ``client`` for LWP,
``fluvio``, ``rustlog``) that registers a suite in `suites`.
"""
