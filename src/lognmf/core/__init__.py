"""The mathematics: arrays in, arrays out.

Nothing here knows scikit-learn, files, plots or the screen. Samples stand in rows:
``X`` is n×p, ``U`` p×k, ``V`` n×k and ``X ≈ V Uᵀ``. Every factor carries a batch of
B settings (weights, restarts) in its middle axis, ``U`` (p, B, k) and ``V`` (n, B, k);
a single fit is B = 1.
"""
