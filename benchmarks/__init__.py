"""Speed and memory of dpselect, as ratios to a named baseline measured in the same run.

Run `python -m benchmarks`. Each suite is a module with a function `measurements(quick)` that yields results; to add
one, write the module and list it in `SUITES` of `__main__.py`.
"""
