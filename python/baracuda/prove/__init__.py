"""Whether kernels keep their promises: float64 references, cases, and what `verify` and the tests do with them."""
