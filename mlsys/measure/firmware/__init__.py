"""Boards: the firmware and its simulator, the serial line, and captures of its output."""
