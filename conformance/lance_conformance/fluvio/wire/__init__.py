"""The profile's own idea of Fluvio's bytes: requests out, strictly read responses in (FLV-01)."""
