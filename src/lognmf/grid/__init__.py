"""Grids of settings: fit them, choose among them, keep their rows."""
