"""Shape functions: views, splitting, joining, flips, broadcasting, repeating."""
