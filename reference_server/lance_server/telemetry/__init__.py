"""OpenTelemetry: metrics and sampled spans to a collector (design section 12).

Nothing here holds up a client: what the collector does not take in time is dropped and counted.
"""
