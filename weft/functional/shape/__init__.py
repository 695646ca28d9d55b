"""Other shapes of the same elements: views, splitting, joining, flips, broadcasting, repeating."""
