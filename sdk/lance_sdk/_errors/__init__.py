"""The errors of the SDK, by subject; `lance_sdk.errors` has them all."""
