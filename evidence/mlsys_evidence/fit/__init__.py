"""Fitting the parameters of :mod:`mlsys.models.estimate`, its effects and its ranges, to the measurements."""
