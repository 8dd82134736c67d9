"""Training steps of architectures of many kinds, each written once for lavax and for PyTorch."""
