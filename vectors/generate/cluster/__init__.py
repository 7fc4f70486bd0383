"""Families of what servers, storage engines and group coordinators send each other."""
