"""Policies of dtypes, and loss scaling for float16."""
