"""Files of LANCE's storage engine."""
