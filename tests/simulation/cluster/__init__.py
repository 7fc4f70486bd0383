"""A cluster, its clients and its log in one process, with faults that a seed decides."""
