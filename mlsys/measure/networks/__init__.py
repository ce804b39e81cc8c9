"""Networks to measure: chains that every runtime runs, their INT8 form and exports, and PyTorch modules."""
