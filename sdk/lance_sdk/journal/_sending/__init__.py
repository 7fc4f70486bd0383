"""Parts of every store-and-forward sender, whatever protocol carries its frames."""
