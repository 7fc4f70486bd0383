"""What both APIs of a member, and of a consumer of several topics, are put together from."""
