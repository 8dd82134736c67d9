"""Neural networks: activations, what turns scores into probabilities, attention, convolution, pooling."""
from lavax.nn.attention import dot_product_attention
from lavax.nn.convolution import conv, conv_transpose
from lavax.nn.functional import log_softmax, logsumexp, one_hot, relu, sigmoid, softmax, softplus, tanh
from lavax.nn.pooling import avg_pool, max_pool, min_pool, sum_pool

logistic = sigmoid

__all__ = [
    "avg_pool",
    "conv",
    "conv_transpose",
    "dot_product_attention",
    "log_softmax",
    "logistic",
    "logsumexp",
    "max_pool",
    "min_pool",
    "one_hot",
    "relu",
    "sigmoid",
    "softmax",
    "softplus",
    "sum_pool",
    "tanh",
]
