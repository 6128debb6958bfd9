"""PyTorch's own samples of its functions (OpInfo), as a judge of bc.functional."""
