"""Eager PyTorch and compiled code compared: times, kernels, passes, and the prediction from measured rates."""
