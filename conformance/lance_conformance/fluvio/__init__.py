"""The questions to servers that speak Fluvio's protocol: an SC, and an SPU that it tells of."""
