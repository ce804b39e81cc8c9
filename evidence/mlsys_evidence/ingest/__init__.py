"""What each source means by its words: software, threads, formats, shapes."""
