"""The scripted server that a client under test meets; it is right where a script says nothing."""
