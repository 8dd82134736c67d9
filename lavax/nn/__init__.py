"""Neural networks: activations, what turns scores into probabilities, convolution, pooling."""
from lavax.nn.convolution import conv, conv_transpose
from lavax.nn.functional import log_softmax, logsumexp, one_hot, relu, sigmoid, softmax, softplus, tanh
from lavax.nn.pooling import avg_pool, max_pool, min_pool, sum_pool

logistic = sigmoid

__all__ = [
    *("log_softmax", "logistic", "logsumexp", "one_hot", "relu", "sigmoid", "softmax", "softplus", "tanh"),
    *("conv", "conv_transpose"),
    *("avg_pool", "max_pool", "min_pool", "sum_pool"),
]
