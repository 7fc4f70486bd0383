"""The grammar: every LANCE layout, declared once, with its facts attached.

The declarations are `construct` structures. They are the source that code, tables, diagrams
and strategies are made from, and the oracle that generated code is held against. They never
parse on a hot path: use `lance_spec.messages` for that.
"""
