"""Features of sound."""
