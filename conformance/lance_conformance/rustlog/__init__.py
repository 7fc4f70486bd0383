"""The questions to servers that speak RustLog's protocol, in binary, in JSON, or in both."""
