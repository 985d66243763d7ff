"""How likely is the right answer, and which epsilon does it take? Computed from scores, so as private as they are."""
