"""The forms of a report: for a terminal, for continuous integration, for a page, for a capture."""
