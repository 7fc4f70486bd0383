"""The settings of ``lance-server``: flags, environment, a TOML file, in this order.

Every setting has one name. ``--tls-cert-path`` on the command line is ``LANCE_TLS_CERT_PATH`` in
the environment and ``cert_path`` in the table ``[tls]`` of the file; ``--max-memory`` is
``LANCE_MAX_MEMORY`` and ``max_memory``. Each file of this package declares one group of them.
"""
