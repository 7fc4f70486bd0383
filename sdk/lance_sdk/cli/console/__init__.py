"""Standard streams, tables, progress, exit codes and error messages of the commands."""
