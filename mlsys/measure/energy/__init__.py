"""Energy: meters, power traces, and a model fitted to measurements."""
