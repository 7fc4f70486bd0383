"""How a coordinator answers: its connections, its service, and the published text protocol."""
