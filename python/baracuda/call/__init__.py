"""Functions: rules that become programs of plans, compositions, gradients, and what is remembered of a call."""
