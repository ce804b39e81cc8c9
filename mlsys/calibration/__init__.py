"""Calibration of the model by a user's own measurements: ``mlsys calibrate``."""
