"""What lavax costs, measured: `python -m benchmarks` runs all, `python -m benchmarks --list` names them."""
