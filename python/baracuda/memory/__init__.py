"""Where values are: devices, streams, tensors, copies between them, threads, random state, and memory for results."""
