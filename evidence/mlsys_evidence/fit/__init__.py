"""Fitting the parameters of :mod:`mlsys.models.calibrated`, its effects and its ranges, to the measurements."""
