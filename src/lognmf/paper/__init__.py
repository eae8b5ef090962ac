"""The study of the paper: its methods, tables and figures, computed again and put next to its numbers."""
