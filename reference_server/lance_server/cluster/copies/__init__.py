"""Copies of a node: snapshots on its own machine, and clones over the network."""
