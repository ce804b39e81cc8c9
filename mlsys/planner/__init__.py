"""Planning: which mapping, which placement, found by search with a proof or an honest bound."""
