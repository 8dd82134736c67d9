"""Neural networks: activations, and what turns scores into probabilities."""
from lavax.nn.functional import log_softmax, logsumexp, one_hot, relu, sigmoid, softmax, softplus, tanh

logistic = sigmoid

__all__ = ["log_softmax", "logistic", "logsumexp", "one_hot", "relu", "sigmoid", "softmax", "softplus", "tanh"]
