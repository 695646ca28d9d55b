"""A chain's calls: where each value lies, what binds them, and the function that is written for them."""
