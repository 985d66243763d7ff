"""Deliberate mistakes in the code, one at a time, and whether `dpselect verify --quick` and the tests notice them.

`python -m mutants` runs them all, `--list` shows them; mutants.toml holds them. Not part of `make test`.
"""
