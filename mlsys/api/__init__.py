"""The everyday calls of ``mlsys``, spelled as its commands: each command prints what its call returns."""
