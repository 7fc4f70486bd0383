"""The LWP server suite: its cases, reference server and mutants."""
