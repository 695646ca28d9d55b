"""The door to public names: the table that binds them, and how arguments are fitted to what a name takes."""
