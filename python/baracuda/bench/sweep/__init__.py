"""`bench --sweep`: every function with a peer, on random shapes, layouts and elements. See docs/benchmarks.md."""
