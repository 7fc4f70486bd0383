"""Back ends: each turns the intermediate representation into one kind of text."""
