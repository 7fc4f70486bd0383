"""Cases about a server as a whole: errors, peers, tokens, TLS, other nodes."""
