"""ONNX Runtime's own operators (com.microsoft): those that its optimizers and quantizers make of networks."""
