"""Ops that choose elements by position."""
