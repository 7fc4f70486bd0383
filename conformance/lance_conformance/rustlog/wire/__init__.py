"""RustLog's messages as the kit writes and reads them; the golden server has a codec of its own."""
