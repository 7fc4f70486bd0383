"""Real faults of real files: calls that fail, disks that fill, power that goes."""
