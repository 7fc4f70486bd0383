"""Base code of the generated codecs."""
