"""Questions to the SKU table and its answers: SKUs, guarantees, capabilities, and plans, which are kernels chosen."""
