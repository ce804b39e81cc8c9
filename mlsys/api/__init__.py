"""The everyday calls of ``mlsys``, named like its commands: each command prints the result of its call."""
