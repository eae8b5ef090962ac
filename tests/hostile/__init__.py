"""Random cases that try to break lognmf: a short run in the tests, a long one by `make soak`."""
