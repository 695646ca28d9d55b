"""Public names: the table that binds them, and the fitting of arguments to what a name takes."""
