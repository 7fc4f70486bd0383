"""The rules of consumer groups, without clocks, sockets and stores: time is passed in."""
