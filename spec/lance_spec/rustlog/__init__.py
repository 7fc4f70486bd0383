"""RustLog's protocol: its messages in JSON."""
