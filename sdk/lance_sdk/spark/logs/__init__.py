"""What can be read, wherever it is: at a server, in files, in slots."""
