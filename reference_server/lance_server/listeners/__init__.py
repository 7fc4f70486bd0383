"""Other protocols over the same log: QWP, Fluvio and RustLog, one package each."""
