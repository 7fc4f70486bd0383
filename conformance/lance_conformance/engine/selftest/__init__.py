"""The kit on trial: golden servers must pass, broken ones must not, and nobody may stop it."""
