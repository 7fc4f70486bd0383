"""Files of a data directory that the grammar frames but does not hold whole."""
