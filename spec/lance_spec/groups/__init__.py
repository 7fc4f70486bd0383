"""The published text protocol of group coordinators."""
