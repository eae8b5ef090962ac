"""Shared by the solvers; benchopt asks for this name."""
