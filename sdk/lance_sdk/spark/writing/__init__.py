"""Where rows go: to a server, straight or by way of a commit log."""
