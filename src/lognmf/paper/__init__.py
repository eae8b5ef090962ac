"""Running many fits: grids of settings, and stores that keep their rows."""
