"""Models that people use, built from configurations and loaded from their published checkpoints."""
