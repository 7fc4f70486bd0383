"""What pages say of the formats: messages, named values, the ambiguity register, vectors."""
