"""The codecs in Python."""
