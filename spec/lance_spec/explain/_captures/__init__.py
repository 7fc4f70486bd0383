"""Explaining captures: the conversations in them, protocol by protocol."""
