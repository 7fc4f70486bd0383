"""What every store-and-forward sender is made of, whatever protocol carries its frames."""
