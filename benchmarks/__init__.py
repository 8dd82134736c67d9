"""Benchmarks of lavax: `python -m benchmarks` runs all, `python -m benchmarks --list` names them."""
