"""Differentially private selection."""
