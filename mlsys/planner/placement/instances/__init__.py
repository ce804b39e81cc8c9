"""Published instances of operator placement: read, searched, bounded, and checked by a separate evaluator."""
