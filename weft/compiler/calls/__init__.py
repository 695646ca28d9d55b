"""A chain's calls: their memory plan, their binding to memory, and the function generated for them."""
