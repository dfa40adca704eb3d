# SPDX-License-Identifier: Apache-2.0
"""Windows, activations, losses and normalisation."""

_SEED_POOL = 'ksize=[1, 4, 3, 2, 1], strides=[1, 4, 3, 2, 1], padding="SAME"'
_POOL = 'ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID"'
_STEPS = 'strides=[1, 1, 1, 1], padding="VALID"'
_WINDOW = "sum over d, h, w, c of input[n, s*z + d, s*y + h, s*x + w, c] * filter[d, h, w, c, k]"
_WINDOW_2D = "sum over h, w, c of input[n, s*y + h, s*x + w, c] * filter[h, w, c, k]"
_NORM = "y = (x - mean) / sqrt(variance + epsilon) * scale + offset"
_NORM_ARGUMENTS = "x=count(1, 2, 2, 1), scale=[2.0], offset=[1.0], mean=[], variance=[]"
_NORM_BACK = "scale=[2.0], reserve_space_1=[2.5], reserve_space_2=[1.25]"

EXAMPLES = {
    "Conv3D": (
        f"output[n, z, y, x, k] = {_WINDOW}",
        'Conv3D(input=count(2, 2, 2, 2, 2), filter=count(2, 2, 2, 2, 2), strides=[1, 4, 3, 2, 1], padding="SAME")',
    ),
    "Conv3DBackpropInputV2": (
        "output[n, s*z + d, s*y + h, s*x + w, c] += sum over k of out_backprop[n, z, y, x, k] * filter[d, h, w, c, k]",
        """
        Conv3DBackpropInputV2(input_sizes=[2, 2, 2, 2, 2], filter=count(2, 2, 2, 2, 2),
                              out_backprop=[[[[[2856.0, 2992.0]]]], [[[[6952.0, 7344.0]]]]],
                              strides=[1, 4, 3, 2, 1], padding="SAME")
        """,
    ),
    "Conv3DBackpropFilterV2": (
        "output[d, h, w, c, k] = sum over n, z, y, x of input[n, s*z + d, s*y + h, s*x + w, c]"
        " * out_backprop[n, z, y, x, k]",
        """
        Conv3DBackpropFilterV2(input=count(2, 2, 2, 2, 2), filter_sizes=[2, 2, 2, 2, 2],
                               out_backprop=[[[[[2856.0, 2992.0]]]], [[[[6952.0, 7344.0]]]]],
                               strides=[1, 4, 3, 2, 1], padding="SAME")
        """,
    ),
    "AvgPool3D": (
        "output[n, z, y, x, c] = mean over the cells of its window that lie inside of input[n, ..., c]",
        f"AvgPool3D(input=count(2, 2, 2, 2, 2), {_SEED_POOL})",
    ),
    "AvgPool3DGrad": (
        "output[n, cell, c] = sum over the windows of a cell of grad[n, window, c] / cells of the window",
        f"""
        AvgPool3DGrad(orig_input_shape=[2, 2, 2, 2, 2], grad=[[[[[8.0, 16.0]]]], [[[[24.0, 32.0]]]]],
                      {_SEED_POOL})
        """,
    ),
    "MaxPool3D": (
        "output[n, z, y, x, c] = maximum over the cells of its window in input[n, ..., c]",
        f"MaxPool3D(input=count(2, 2, 2, 2, 2), {_SEED_POOL})",
    ),
    "MaxPool3DGrad": (
        "output[n, cell, c] = sum of grad[n, window, c] over the windows whose maximum is the cell",
        """
        MaxPool3DGrad(orig_input=count(1, 2, 2, 2, 2), orig_output=[[[[[15.0, 16.0]]]]], grad=[[[[[3.0, 5.0]]]]],
                      ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1], padding="VALID")
        """,
    ),
    "MaxPool3DGradGrad": (
        "output[n, window, c] = grad[n, cell, c] at the cell that is the maximum of the window",
        """
        MaxPool3DGradGrad(orig_input=count(1, 2, 2, 2, 2), orig_output=[[[[[15.0, 16.0]]]]],
                          grad=count(1, 2, 2, 2, 2, start=101), ksize=[1, 2, 2, 2, 1], strides=[1, 2, 2, 2, 1],
                          padding="VALID")
        """,
    ),
    "Relu": ("activations = max(features, 0)", "Relu(features=[-1.5, 0.0, 2.0])"),
    "ReluGrad": (
        "backprops = gradients if features > 0 else 0",
        "ReluGrad(gradients=[1.0, 2.0, 3.0], features=[-1.5, 0.0, 2.0])",
    ),
    "Relu6": ("activations = min(max(features, 0), 6)", "Relu6(features=[-1.5, 2.0, 9.0])"),
    "Relu6Grad": (
        "backprops = gradients if 0 < features < 6 else 0",
        "Relu6Grad(gradients=[1.0, 2.0, 3.0], features=[-1.5, 2.0, 9.0])",
    ),
    "LeakyRelu": (
        "activations = features if features > 0 else alpha * features",
        "LeakyRelu(features=[-1.5, 0.0, 2.0], alpha=0.1)",
    ),
    "LeakyReluGrad": (
        "backprops = gradients if features > 0 else alpha * gradients",
        "LeakyReluGrad(gradients=[1.0, 2.0, 3.0], features=[-1.5, 0.0, 2.0], alpha=0.1)",
    ),
    "Elu": ("activations = features if features > 0 else exp(features) - 1", "Elu(features=[-1.0, 0.0, 2.0])"),
    "EluGrad": (
        "backprops = gradients if outputs > 0 else gradients * (outputs + 1)",
        "EluGrad(gradients=[1.0, 2.0, 3.0], outputs=[-0.5, 0.0, 2.0])",
    ),
    "Selu": (
        "activations = 1.0507 * (features if features > 0 else 1.67326 * (exp(features) - 1))",
        "Selu(features=[-1.0, 0.0, 2.0])",
    ),
    "SeluGrad": (
        "backprops = gradients * (1.0507 if outputs > 0 else outputs + 1.75810)",
        "SeluGrad(gradients=[1.0, 2.0, 3.0], outputs=[-0.5, 0.0, 2.0])",
    ),
    "Softplus": ("activations = log(exp(features) + 1)", "Softplus(features=[-1.0, 0.0, 2.0])"),
    "SoftplusGrad": (
        "backprops = gradients / (exp(-features) + 1)",
        "SoftplusGrad(gradients=[1.0, 2.0, 3.0], features=[-1.0, 0.0, 2.0])",
    ),
    "Softsign": ("activations = features / (|features| + 1)", "Softsign(features=[-1.0, 0.0, 3.0])"),
    "SoftsignGrad": (
        "backprops = gradients / (|features| + 1) ** 2",
        "SoftsignGrad(gradients=[1.0, 2.0, 3.0], features=[-1.0, 0.0, 3.0])",
    ),
    "Softmax": ("softmax[i] = exp(logits[i]) / sum over j of exp(logits[j])", "Softmax(logits=[[1.0, 2.0, 3.0]])"),
    "LogSoftmax": (
        "logsoftmax[i] = logits[i] - log(sum over j of exp(logits[j]))",
        "LogSoftmax(logits=[[1.0, 2.0, 3.0]])",
    ),
    "SoftmaxCrossEntropyWithLogits": (
        "loss = -sum over i of labels[i] * log(softmax(features)[i]); backprop = softmax(features) - labels",
        "SoftmaxCrossEntropyWithLogits(features=[[1.0, 2.0, 3.0]], labels=[[0.0, 0.0, 1.0]])",
    ),
    "SparseSoftmaxCrossEntropyWithLogits": (
        "loss = -log(softmax(features)[labels]); backprop = softmax(features) - onehot(labels)",
        "SparseSoftmaxCrossEntropyWithLogits(features=[[1.0, 2.0, 3.0]], labels=[2])",
    ),
    "L2Loss": ("output = sum of t * t, / 2", "L2Loss(t=[3.0, 4.0])"),
    "BiasAdd": (
        "output[..., c] = value[..., c] + bias[c]",
        "BiasAdd(value=[[1.0, 2.0], [3.0, 4.0]], bias=[10.0, 20.0])",
    ),
    "BiasAddV1": (
        "output[..., c] = value[..., c] + bias[c]",
        "BiasAddV1(value=[[1.0, 2.0], [3.0, 4.0]], bias=[10.0, 20.0])",
    ),
    "BiasAddGrad": (
        "output[c] = sum of out_backprop[..., c]",
        "BiasAddGrad(out_backprop=[[1.0, 2.0], [3.0, 4.0]])",
    ),
    "LRN": (
        "output[c] = input[c] / (bias + alpha * sum over |k - c| <= depth_radius of input[k]**2) ** beta",
        "LRN(input=[[[[1.0, 2.0, 3.0]]]], depth_radius=1)",
    ),
    "LRNGrad": (
        "",
        """
        x = Const(value=[[[[1.0, 2.0, 3.0]]]], dtype="float32")
        y = LRN(input=x, depth_radius=1)
        LRNGrad(input_grads=[[[[1.0, 1.0, 1.0]]]], input_image=x, output_image=y, depth_radius=1)
        """,
    ),
    "InTopK": ("", "InTopK(predictions=[[0.1, 0.7, 0.2], [0.5, 0.1, 0.4]], targets=[2, 1], k=2)"),
    "TopK": ("", "TopK(input=[1.0, 9.0, 3.0, 7.0], k=2)"),
    "TopKV2": ("", "TopKV2(input=[1.0, 9.0, 3.0, 7.0], k=2)"),
    "FusedBatchNorm": (_NORM, f"FusedBatchNorm({_NORM_ARGUMENTS})"),
    "FusedBatchNormV2": (_NORM, f"FusedBatchNormV2({_NORM_ARGUMENTS})"),
    "FusedBatchNormV3": (_NORM, f"FusedBatchNormV3({_NORM_ARGUMENTS})"),
    "FusedBatchNormGrad": (
        "",
        f"FusedBatchNormGrad(y_backprop=[[[[1.0], [0.0]], [[0.0], [0.0]]]], x=count(1, 2, 2, 1), {_NORM_BACK})",
    ),
    "FusedBatchNormGradV2": (
        "",
        f"FusedBatchNormGradV2(y_backprop=[[[[1.0], [0.0]], [[0.0], [0.0]]]], x=count(1, 2, 2, 1), {_NORM_BACK})",
    ),
    "FusedBatchNormGradV3": (
        "",
        f"""
        FusedBatchNormGradV3(y_backprop=[[[[1.0], [0.0]], [[0.0], [0.0]]]], x=count(1, 2, 2, 1), {_NORM_BACK},
                             reserve_space_3=[0.0])
        """,
    ),
    "Conv2D": (
        f"output[n, y, x, k] = {_WINDOW_2D}",
        f"Conv2D(input=count(1, 3, 3, 1), filter=[[[[1.0]], [[0.0]]], [[[0.0]], [[-1.0]]]], {_STEPS})",
    ),
    "Conv2DBackpropInput": (
        "output[n, s*y + h, s*x + w, c] += sum over k of out_backprop[n, y, x, k] * filter[h, w, c, k]",
        f"""
        Conv2DBackpropInput(input_sizes=[1, 3, 3, 1], filter=[[[[1.0]], [[0.0]]], [[[0.0]], [[-1.0]]]],
                            out_backprop=count(1, 2, 2, 1), {_STEPS})
        """,
    ),
    "Conv2DBackpropFilter": (
        "output[h, w, c, k] = sum over n, y, x of input[n, s*y + h, s*x + w, c] * out_backprop[n, y, x, k]",
        f"""
        Conv2DBackpropFilter(input=count(1, 3, 3, 1), filter_sizes=[2, 2, 1, 1],
                             out_backprop=count(1, 2, 2, 1), {_STEPS})
        """,
    ),
    "DepthwiseConv2dNative": (
        "output[n, y, x, c*m + q] = sum over h, w of input[n, s*y + h, s*x + w, c] * filter[h, w, c, q]",
        f"DepthwiseConv2dNative(input=count(1, 2, 2, 2), filter=[[[[1.0], [10.0]]]], {_STEPS})",
    ),
    "DepthwiseConv2dNativeBackpropInput": (
        "",
        f"""
        DepthwiseConv2dNativeBackpropInput(input_sizes=[1, 2, 2, 2], filter=[[[[1.0], [10.0]]]],
                                           out_backprop=count(1, 2, 2, 2), {_STEPS})
        """,
    ),
    "DepthwiseConv2dNativeBackpropFilter": (
        "",
        f"""
        DepthwiseConv2dNativeBackpropFilter(input=count(1, 2, 2, 2), filter_sizes=[1, 1, 2, 1],
                                            out_backprop=count(1, 2, 2, 2), {_STEPS})
        """,
    ),
    "FusedPadConv2D": (
        "",
        f"""
        FusedPadConv2D(input=count(1, 2, 2, 1), paddings=[[0, 0], [1, 0], [1, 0], [0, 0]],
                       filter=[[[[1.0]], [[1.0]]]], mode="REFLECT", {_STEPS})
        """,
    ),
    "FusedResizeAndPadConv2D": (
        "",
        f"""
        FusedResizeAndPadConv2D(input=count(1, 2, 2, 1), size=[2, 4], paddings=[[0, 0], [1, 0], [0, 0], [0, 0]],
                                filter=[[[[1.0]], [[1.0]]]], mode="REFLECT", {_STEPS})
        """,
    ),
    "MaxPool": ("output[n, y, x, c] = maximum over its window", f"MaxPool(input=count(1, 2, 4, 1), {_POOL})"),
    "MaxPoolGrad": (
        "output[n, cell, c] = sum of grad[n, window, c] over the windows whose maximum is the cell",
        f"""
        x = Const(value=count(1, 2, 4, 1), dtype="float32")
        y = MaxPool(input=x, {_POOL})
        MaxPoolGrad(orig_input=x, orig_output=y, grad=[[[[10.0], [20.0]]]], {_POOL})
        """,
    ),
    "MaxPoolGradGrad": (
        "output[n, window, c] = grad[n, cell, c] at the cell that is the maximum of the window",
        f"""
        x = Const(value=count(1, 2, 4, 1), dtype="float32")
        y = MaxPool(input=x, {_POOL})
        MaxPoolGradGrad(orig_input=x, orig_output=y, grad=count(1, 2, 4, 1, start=11), {_POOL})
        """,
    ),
    "AvgPool": ("output[n, y, x, c] = mean over its window", f"AvgPool(value=count(1, 2, 4, 1), {_POOL})"),
    "AvgPoolGrad": (
        "output[n, cell, c] = sum over its windows of grad[n, window, c] / cells of the window",
        f"AvgPoolGrad(orig_input_shape=[1, 2, 4, 1], grad=[[[[4.0], [8.0]]]], {_POOL})",
    ),
    "ExtractImagePatches": (
        "",
        """
        ExtractImagePatches(images=count(1, 3, 3, 1), ksizes=[1, 2, 2, 1], strides=[1, 1, 1, 1], rates=[1, 1, 1, 1],
                            padding="VALID")
        """,
    ),
    "Dilation2D": (
        "output[n, y, x, c] = maximum over h, w of input[n, y + h, x + w, c] + filter[h, w, c]",
        """
        Dilation2D(input=count(1, 2, 3, 1), filter=[[[0.0], [0.5]]], strides=[1, 1, 1, 1], rates=[1, 1, 1, 1],
                   padding="VALID")
        """,
    ),
    "Dilation2DBackpropInput": (
        "",
        """
        Dilation2DBackpropInput(input=count(1, 2, 3, 1), filter=[[[0.0], [0.5]]], out_backprop=count(1, 2, 2, 1),
                                strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="VALID")
        """,
    ),
    "Dilation2DBackpropFilter": (
        "",
        """
        Dilation2DBackpropFilter(input=count(1, 2, 3, 1), filter=[[[0.0], [0.5]]], out_backprop=count(1, 2, 2, 1),
                                 strides=[1, 1, 1, 1], rates=[1, 1, 1, 1], padding="VALID")
        """,
    ),
    "MaxPoolWithArgmax": ("", f"MaxPoolWithArgmax(input=count(1, 2, 4, 1), {_POOL})"),
    "MaxPoolGradWithArgmax": (
        "output[argmax[window]] += grad[window]",
        f"""
        x = Const(value=count(1, 2, 4, 1), dtype="float32")
        y = MaxPoolWithArgmax(input=x, {_POOL})
        MaxPoolGradWithArgmax(input=x, grad=[[[[10.0], [20.0]]]], argmax=y[1], {_POOL})
        """,
    ),
    "MaxPoolGradGradWithArgmax": (
        "output[window] = grad[argmax[window]]",
        f"""
        x = Const(value=count(1, 2, 4, 1), dtype="float32")
        y = MaxPoolWithArgmax(input=x, {_POOL})
        MaxPoolGradGradWithArgmax(input=x, grad=count(1, 2, 4, 1, start=11), argmax=y[1], {_POOL})
        """,
    ),
    "FractionalAvgPool": (
        "",
        """
        FractionalAvgPool(value=count(1, 3, 3, 1), pooling_ratio=[1.0, 1.5, 1.5, 1.0], deterministic=True, seed=1,
                          seed2=2)
        """,
    ),
    "FractionalMaxPool": (
        "",
        """
        FractionalMaxPool(value=count(1, 3, 3, 1), pooling_ratio=[1.0, 1.5, 1.5, 1.0], deterministic=True, seed=1,
                          seed2=2)
        """,
    ),
    "FractionalAvgPoolGrad": (
        "",
        """
        FractionalAvgPoolGrad(orig_input_tensor_shape=[1, 3, 3, 1], out_backprop=[[[[4.0], [2.0]], [[2.0], [1.0]]]],
                              row_pooling_sequence=[0, 2, 3], col_pooling_sequence=[0, 2, 3])
        """,
    ),
    "FractionalMaxPoolGrad": (
        "",
        """
        FractionalMaxPoolGrad(orig_input=count(1, 3, 3, 1), orig_output=[[[[5.0], [6.0]], [[8.0], [9.0]]]],
                              out_backprop=count(1, 2, 2, 1), row_pooling_sequence=[0, 2, 3],
                              col_pooling_sequence=[0, 2, 3])
        """,
    ),
}
