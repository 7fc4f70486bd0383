"""The grammar of LANCE: every byte on the wire and on disk, declared once.

`lance_spec.grammar` declares; `lance_spec.messages` is the codec generated from it;
`lance_spec.frames` and `lance_spec.records` are the fast paths for streams of frames and
chains of records. Import from these modules: this package itself imports nothing, so that
whoever needs one part pays for that part alone.
"""
