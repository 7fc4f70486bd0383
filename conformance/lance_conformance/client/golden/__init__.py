"""The golden client: small, right, and with a codec that the kit's own does not share."""
