"""Answers as the bytes that a provider's server writes, one module for each format.

What every format owes the turn is tested over all of them with the same parts of answers; where a format has words of
its own for something, its module has a function of its own for it.
"""
