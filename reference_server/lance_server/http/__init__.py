"""The HTTP port: health, metrics and the status page (design sections 10.6 and 12.8)."""
