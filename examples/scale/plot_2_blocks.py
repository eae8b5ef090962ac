"""
T
=

"""

print(1)
