"""A machine's own measurements, and what they teach the model of it: `mlsys calibrate`."""
