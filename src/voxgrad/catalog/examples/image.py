# SPDX-License-Identifier: Apache-2.0
"""Pictures: sizes, crops, colours, boxes, files."""

_BOXES = "boxes=[[0.0, 0.0, 1.0, 1.0]], box_ind=[0]"
_GIF = "R0lGODlhAgABAIAAAP8AAAAA_ywAAAAAAgABAAACAkQKADs"
_BMP = "Qk0-AAAAAAAAADYAAAAoAAAAAgAAAAEAAAABABgAAAAAAAgAAAAAAAAAAAAAAAAAAAAAAAAAAAD__wAAAAA"

EXAMPLES = {
    "ResizeBilinear": ("", "ResizeBilinear(images=[[[[0.0], [10.0]]]], size=[1, 4])"),
    "ResizeBilinearGrad": ("", "ResizeBilinearGrad(grads=count(1, 1, 4, 1), original_image=[[[[0.0], [10.0]]]])"),
    "ResizeBicubic": ("", "ResizeBicubic(images=[[[[0.0], [10.0]]]], size=[1, 4])"),
    "ResizeBicubicGrad": ("", "ResizeBicubicGrad(grads=count(1, 1, 4, 1), original_image=[[[[0.0], [10.0]]]])"),
    "ResizeNearestNeighbor": ("", "ResizeNearestNeighbor(images=[[[[1], [2]]]], size=[2, 4])"),
    "ResizeNearestNeighborGrad": ("", "ResizeNearestNeighborGrad(grads=count(1, 1, 4, 1), size=[1, 2])"),
    "ResizeArea": ("", "ResizeArea(images=count(1, 2, 4, 1), size=[1, 2])"),
    "CropAndResize": (
        "",
        "CropAndResize(image=count(1, 3, 3, 1), boxes=[[0.0, 0.0, 0.5, 0.5]], box_ind=[0], crop_size=[2, 2])",
    ),
    "CropAndResizeGradImage": (
        "",
        f'CropAndResizeGradImage(grads=count(1, 2, 2, 1), {_BOXES}, image_size=[1, 3, 3, 1], T="float32")',
    ),
    "CropAndResizeGradBoxes": (
        "",
        f"CropAndResizeGradBoxes(grads=count(1, 2, 2, 1), image=count(1, 3, 3, 1), {_BOXES})",
    ),
    "ExtractGlimpse": ("", "ExtractGlimpse(input=count(1, 3, 3, 1), size=[2, 2], offsets=[[0.0, 0.0]])"),
    "SampleDistortedBoundingBox": (
        "",
        """
        SampleDistortedBoundingBox(image_size=[40, 30, 3], bounding_boxes=[[[0.2, 0.2, 0.8, 0.9]]], seed=1, seed2=2)
        """,
    ),
    "SampleDistortedBoundingBoxV2": (
        "",
        """
        SampleDistortedBoundingBoxV2(image_size=[40, 30, 3], bounding_boxes=[[[0.2, 0.2, 0.8, 0.9]]],
                                     min_object_covered=0.5, seed=1, seed2=2)
        """,
    ),
    "RGBToHSV": ("", "RGBToHSV(images=[[1.0, 0.0, 0.0], [0.2, 0.4, 0.4]])"),
    "HSVToRGB": ("", "HSVToRGB(images=[[0.0, 1.0, 1.0], [0.5, 0.5, 0.4]])"),
    "AdjustHue": ("hue = (hue + delta) mod 1", "AdjustHue(images=[[[1.0, 0.0, 0.0], [0.2, 0.4, 0.4]]], delta=0.25)"),
    "AdjustSaturation": (
        "saturation = min(saturation * scale, 1)",
        "AdjustSaturation(images=[[[1.0, 0.5, 0.5], [0.2, 0.4, 0.4]]], scale=0.5)",
    ),
    "AdjustContrast": (
        "output = min(max((images - mean) * contrast_factor + mean, min_value), max_value)",
        "AdjustContrast(images=count(2, 2, 1), contrast_factor=2.0, min_value=0.0, max_value=5.0)",
    ),
    "AdjustContrastv2": (
        "output = (images - mean) * contrast_factor + mean",
        "AdjustContrastv2(images=count(2, 2, 1), contrast_factor=2.0)",
    ),
    "DrawBoundingBoxes": (
        "",
        """
        image = Fill(dims=[1, 4, 5, 1], value=0.5)
        DrawBoundingBoxes(images=image, boxes=[[[0.0, 0.0, 0.7, 0.7]]])
        """,
    ),
    "NonMaxSuppression": (
        "",
        """
        NonMaxSuppression(boxes=[[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1], [0.0, 2.0, 1.0, 3.0]],
                          scores=[0.9, 0.75, 0.6], max_output_size=3)
        """,
    ),
    "DecodePng": (
        "",
        """
        file = EncodePng(image=uint8([[[255, 0, 0], [0, 0, 255]]]))
        DecodePng(contents=file, channels=3)
        """,
    ),
    "DecodeBmp": (
        "",
        f"""
        file = DecodeBase64(input="{_BMP}")
        DecodeBmp(contents=file)
        """,
    ),
    "DecodeJpeg": (
        "",
        """
        file = EncodeJpeg(image=uint8([[[100], [100]], [[100], [100]]]), format="grayscale")
        DecodeJpeg(contents=file)
        """,
    ),
    "DecodeGif": (
        "",
        f"""
        file = DecodeBase64(input="{_GIF}")
        DecodeGif(contents=file)
        """,
    ),
    "EncodePng": (
        "",
        """
        file = EncodePng(image=uint8([[[255, 0, 0], [0, 0, 255]]]))
        DecodePng(contents=file, channels=1)
        """,
    ),
    "EncodeJpeg": (
        "",
        """
        file = EncodeJpeg(image=uint8([[[100], [100]], [[100], [100]]]), format="grayscale")
        Substr(input=file, pos=6, len=4)
        """,
    ),
}
