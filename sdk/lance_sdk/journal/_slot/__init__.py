"""The journal on disk: files of a slot, how they are read, put in order and written."""
