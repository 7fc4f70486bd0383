"""Code that the sync and async API classes share: settings, validation, wiring, lifecycle."""
