"""Errors of the fit: left-out rows, blind evaluations, other predictors, tables and pictures."""
