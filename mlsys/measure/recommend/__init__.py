"""What to change or to choose: upper bounds of gains, platforms, and predictions on others."""
