"""Inference of language models over many chips: memory, prefill and decode, largest batch and sequence."""
