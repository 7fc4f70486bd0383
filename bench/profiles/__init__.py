"""Where the time goes: flame graphs, a timeline, and what each compiled function brings."""
