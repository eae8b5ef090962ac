"""The number of components, and the parts that many fits agree on."""
