"""Roles and faults for rehearsing what a client does about them; one node is all there is."""
