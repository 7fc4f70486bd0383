"""What the grammar is lowered to, for codecs, back ends and strategies."""
