"""Training loops: metrics, logs, evaluation, checkpoints, resuming."""
