# SPDX-License-Identifier: Apache-2.0
"""Integers of a few bits that stand for a range of numbers."""

_IMAGE = "quint8([[[[0], [64]], [[128], [255]]]])"
_POOL = 'ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID"'
_WIDE = "qint32([0, 1000000, -2000000]), input_min=-100.0, input_max=100.0"
_FEATURES = "features=quint8([0, 100, 200, 255]), min_features=-10.0, max_features=15.5"

EXAMPLES = {
    "FakeQuantWithMinMaxArgs": (
        "outputs = round((inputs - min) / step) * step + min, step = (max - min) / (2**num_bits - 1)",
        "FakeQuantWithMinMaxArgs(inputs=[-9.0, 0.1, 1.0], min=-6.0, max=6.0)",
    ),
    "FakeQuantWithMinMaxArgsGradient": (
        "backprops = gradients if min <= inputs <= max else 0",
        "FakeQuantWithMinMaxArgsGradient(gradients=[1.0, 2.0, 3.0], inputs=[-9.0, 0.1, 1.0], min=-6.0, max=6.0)",
    ),
    "FakeQuantWithMinMaxVars": (
        "outputs = round((inputs - min) / step) * step + min, step = (max - min) / (2**num_bits - 1)",
        "FakeQuantWithMinMaxVars(inputs=[-9.0, 0.1, 1.0], min=0.0, max=1.0, num_bits=3)",
    ),
    "FakeQuantWithMinMaxVarsGradient": (
        "",
        "FakeQuantWithMinMaxVarsGradient(gradients=[1.0, 2.0, 3.0], inputs=[-9.0, 0.1, 1.5], min=0.0, max=1.0)",
    ),
    "FakeQuantWithMinMaxVarsPerChannel": (
        "outputs[..., c] = round((inputs[..., c] - min[c]) / step) * step + min[c]",
        "FakeQuantWithMinMaxVarsPerChannel(inputs=[[0.3, 0.3]], min=[0.0, 0.0], max=[1.0, 7.0], num_bits=3)",
    ),
    "FakeQuantWithMinMaxVarsPerChannelGradient": (
        "",
        """
        FakeQuantWithMinMaxVarsPerChannelGradient(gradients=[[1.0, 2.0]], inputs=[[0.3, 9.0]], min=[0.0, 0.0],
                                                  max=[1.0, 7.0])
        """,
    ),
    "QuantizeAndDequantizeV2": (
        "output = round(input * scale) / scale",
        """
        QuantizeAndDequantizeV2(input=[-1.0, 0.3, 0.8], input_min=-1.0, input_max=1.0, num_bits=4, range_given=True)
        """,
    ),
    "QuantizeV2": (
        "output = round((input - min_range) * 255 / (max_range - min_range))",
        'QuantizeV2(input=[0.0, 0.5, 1.0], min_range=0.0, max_range=1.0, T="quint8")',
    ),
    "Dequantize": (
        "output = min_range + input * (max_range - min_range) / 255",
        "Dequantize(input=quint8([0, 51, 255]), min_range=0.0, max_range=10.0)",
    ),
    "QuantizedConcat": (
        "",
        """
        QuantizedConcat(concat_dim=0, values=[quint8([0, 255]), quint8([0, 255])], input_mins=[0.0, 0.0],
                        input_maxes=[1.0, 2.0])
        """,
    ),
    "QuantizedReshape": (
        "",
        "QuantizedReshape(tensor=quint8([1, 2, 3, 4]), shape=[2, 2], input_min=0.0, input_max=1.0)",
    ),
    "QuantizedInstanceNorm": ("", f"QuantizedInstanceNorm(x={_IMAGE}, x_min=0.0, x_max=1.0)"),
    "QuantizeDownAndShrinkRange": ("", f'QuantizeDownAndShrinkRange(input={_WIDE}, out_type="quint8")'),
    "Requantize": (
        "",
        f"""
        Requantize(input={_WIDE}, requested_output_min=-1.0, requested_output_max=1.0,
                   out_type="quint8")
        """,
    ),
    "RequantizationRange": ("", f"RequantizationRange(input={_WIDE})"),
    "QuantizedMatMul": (
        "out[i, j] = sum over k of (a[i, k] - zero_a) * (b[k, j] - zero_b)",
        """
        QuantizedMatMul(a=quint8([[1, 2], [3, 4]]), b=quint8([[5], [6]]), min_a=0.0, max_a=255.0, min_b=0.0,
                        max_b=255.0)
        """,
    ),
    "QuantizedMul": (
        "z = (x - zero_x) * (y - zero_y)",
        "QuantizedMul(x=quint8([1, 2, 3]), y=quint8([4, 5, 6]), min_x=0.0, max_x=255.0, min_y=0.0, max_y=255.0)",
    ),
    "QuantizedAvgPool": ("", f"QuantizedAvgPool(input={_IMAGE}, min_input=0.0, max_input=1.0, {_POOL})"),
    "QuantizedMaxPool": ("", f"QuantizedMaxPool(input={_IMAGE}, min_input=0.0, max_input=1.0, {_POOL})"),
    "QuantizedBatchNormWithGlobalNormalization": (
        "result = (t - m) / sqrt(v + variance_epsilon) * gamma + beta",
        """
        QuantizedBatchNormWithGlobalNormalization(
            t=quint8([[[[0, 255]]]]), t_min=0.0, t_max=4.0, m=quint8([128, 64]), m_min=0.0, m_max=4.0,
            v=quint8([64, 255]), v_min=0.0, v_max=4.0, beta=quint8([0, 255]), beta_min=0.0, beta_max=1.0,
            gamma=quint8([255, 128]), gamma_min=0.0, gamma_max=1.0,
            out_type="qint32", variance_epsilon=0.001, scale_after_normalization=True)
        """,
    ),
    "QuantizedBiasAdd": (
        "output[..., c] = input[..., c] + bias[c]",
        """
        QuantizedBiasAdd(input=quint8([[0, 255]]), bias=quint8([0, 255]), min_input=0.0, max_input=1.0, min_bias=0.0,
                         max_bias=1.0, out_type="qint32")
        """,
    ),
    "QuantizedConv2D": (
        "",
        f"""
        QuantizedConv2D(input={_IMAGE}, filter=quint8([[[[2]]]]), min_input=0.0, max_input=255.0, min_filter=0.0,
                        max_filter=255.0, strides=[1, 1, 1, 1], padding="VALID")
        """,
    ),
    "QuantizedRelu": ("activations = max(features, 0)", f"QuantizedRelu({_FEATURES})"),
    "QuantizedRelu6": ("activations = min(max(features, 0), 6)", f"QuantizedRelu6({_FEATURES})"),
    "QuantizedReluX": (
        "activations = min(max(features, 0), max_value)",
        f"QuantizedReluX(max_value=3.0, {_FEATURES})",
    ),
    "QuantizedResizeBilinear": (
        "",
        "QuantizedResizeBilinear(images=[[[[0.0], [10.0]]]], size=[1, 4], min=0.0, max=10.0)",
    ),
}
