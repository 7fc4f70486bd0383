"""The intermediate representation of the grammar, for codecs, back ends and strategies."""
