"""Working sets on sparse columns."""
