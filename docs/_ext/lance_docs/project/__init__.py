"""What pages say of the project itself: its changes, its imports, its source, its tests."""
