"""Figures and tables about the mechanisms, as programs: `python -m experiments NAME --data DIR [--out DIR]`.

Each experiment is a module with a function `rows(data)` that yields plain records. To add one, write the module and
list it in `EXPERIMENTS` of `__main__.py`. Real data stay in the folder that --data names; nothing is copied.
"""
