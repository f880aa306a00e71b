"""Who finds the better ceiling of matrix products: gpubench's short search, or brute force."""
