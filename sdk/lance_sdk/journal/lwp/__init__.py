"""Store and forward over LWP: slots, batches, topics, and the sessions that carry them."""
