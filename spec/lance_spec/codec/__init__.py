"""What the generated codecs are built on."""
