"""What needs torch. Imported only where there is a tensor."""
