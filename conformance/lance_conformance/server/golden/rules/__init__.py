"""The rules of the golden server, subject by subject; every public method is a hook."""
