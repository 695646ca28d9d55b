"""The logical graph as text and data: ops, their arguments and specs, independent of any rank. The lazy interpreter
writes it, the compiler's passes rewrite it, and it prints, parses and verifies at every stage.
"""
