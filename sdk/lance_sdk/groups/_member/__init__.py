"""Parts of a group's member and of a consumer of several topics, for both APIs."""
