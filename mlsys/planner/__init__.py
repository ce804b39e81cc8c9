"""Planners: mappings, placements and memory plans found by search, with a proof or a stated gap."""
