"""Benchmarks: `python -m bench [append|memory]`, also `make bench ONLY=append`."""
