"""Operations of NNEF that others stand for, written in NNEF itself. A file may define them in its own way."""
from __future__ import annotations

from functools import cache

from lavax.onnx.nnef.text import Fragment, fragments

_TEXT = """
fragment softabs( x: tensor<scalar>, epsilon: scalar ) -> ( y: tensor<scalar> )
{
    y = sqrt(x * x + epsilon);
}
fragment moments( input: tensor<scalar>, axes: integer[] ) -> ( mean: tensor<scalar>, variance: tensor<scalar> )
{
    mean = mean_reduce(input, axes = axes);
    variance = mean_reduce(sqr(input - mean), axes = axes);
}
fragment l1_normalization( input: tensor<scalar>, axes: integer[], bias: scalar = 0.0, epsilon: scalar = 0.0 )
-> ( output: tensor<scalar> )
{
    output = input / max(sum_reduce(abs(input), axes = axes) + bias, epsilon);
}
fragment rms_pool( input: tensor<scalar>, size: integer[], border: string = 'constant',
    padding: (integer,integer)[] = [], stride: integer[] = [], dilation: integer[] = [] )
-> ( output: tensor<scalar> )
{
    output = sqrt(avg_pool(sqr(input), size = size, border = border, padding = padding, stride = stride,
        dilation = dilation));
}
fragment local_mean_normalization( input: tensor<scalar>, size: integer[] ) -> ( output: tensor<scalar> )
{
    output = input - box(input, size = size, normalize = true);
}
fragment local_variance_normalization( input: tensor<scalar>, size: integer[], bias: scalar = 0.0,
    epsilon: scalar = 0.0 )
-> ( output: tensor<scalar> )
{
    output = input / max(sqrt(box(sqr(input), size = size, normalize = true)) + bias, epsilon);
}
fragment local_contrast_normalization( input: tensor<scalar>, size: integer[], bias: scalar = 0.0,
    epsilon: scalar = 0.0 )
-> ( output: tensor<scalar> )
{
    centred = local_mean_normalization(input, size = size);
    output = local_variance_normalization(centred, size = size, bias = bias, epsilon = epsilon);
}
fragment separable_conv( input: tensor<scalar>, plane_filter: tensor<scalar>, point_filter: tensor<scalar>,
    bias: tensor<scalar> = 0.0, border: string = 'constant', padding: (integer,integer)[] = [],
    stride: integer[] = [], dilation: integer[] = [], groups: integer = 1 )
-> ( output: tensor<scalar> )
{
    planes = conv(input, plane_filter, border = border, padding = padding, stride = stride, dilation = dilation,
        groups = 0);
    output = conv(planes, point_filter, bias, groups = groups);
}
"""


@cache
def standard() -> dict[str, Fragment]:
    """The fragments by name, each after those that it calls."""
    return fragments(_TEXT)
