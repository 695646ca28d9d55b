"""The tape: it wraps any interpreter, records what a gradient will need, and walks back. Calls pass through on their
way down; gradients are calls of public ops that pass through once more.
"""
