"""Families of the files in a store-and-forward slot."""
