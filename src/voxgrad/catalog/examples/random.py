# SPDX-License-Identifier: Apache-2.0
"""Random numbers. With seeds they are the same in every run, and TensorFlow's."""

_CANDIDATES = "true_classes=[[0, 3]], num_true=2, num_sampled=3, unique=True"

EXAMPLES = {
    "RandomStandardNormal": ("", 'RandomStandardNormal(shape=[2, 2], dtype="float32", seed=1, seed2=2)'),
    "RandomUniform": ("", 'RandomUniform(shape=[2, 2], dtype="float32", seed=1, seed2=2)'),
    "TruncatedNormal": ("", 'TruncatedNormal(shape=[2, 2], dtype="float32", seed=1, seed2=2)'),
    "RandomUniformInt": ("", "RandomUniformInt(shape=[6], minval=1, maxval=7, seed=1, seed2=2)"),
    "RandomShuffle": ("", "RandomShuffle(value=[1, 2, 3, 4, 5], seed=1, seed2=2)"),
    "Multinomial": ("", "Multinomial(logits=[[0.0, 0.0, 3.0]], num_samples=6, seed=1, seed2=2)"),
    "RandomGamma": ("", "RandomGamma(shape=[3], alpha=[2.0], seed=1, seed2=2)"),
    "RandomGammaGrad": ("", "RandomGammaGrad(alpha=[2.0, 3.0], sample=[1.5, 2.5])"),
    "RandomPoisson": ("", "RandomPoisson(shape=[4], rate=[3.0], seed=1, seed2=2)"),
    "ParameterizedTruncatedNormal": (
        "",
        """
        ParameterizedTruncatedNormal(shape=[4], means=[0.0], stdevs=[1.0], minvals=[-1.0], maxvals=[1.0], seed=1,
                                     seed2=2)
        """,
    ),
    "AllCandidateSampler": (
        "",
        "AllCandidateSampler(true_classes=[[0, 3]], num_true=2, num_sampled=5, unique=True, seed=1, seed2=2)",
    ),
    "UniformCandidateSampler": ("", f"UniformCandidateSampler({_CANDIDATES}, range_max=5, seed=1, seed2=2)"),
    "LogUniformCandidateSampler": (
        "probability of class k = log((k + 2) / (k + 1)) / log(range_max + 1)",
        f"LogUniformCandidateSampler({_CANDIDATES}, range_max=5, seed=1, seed2=2)",
    ),
    "LearnedUnigramCandidateSampler": (
        "",
        f"LearnedUnigramCandidateSampler({_CANDIDATES}, range_max=5, seed=1, seed2=2)",
    ),
    "FixedUnigramCandidateSampler": (
        "",
        f"""
        FixedUnigramCandidateSampler({_CANDIDATES}, range_max=5,
                                     unigrams=[1.0, 1.0, 2.0, 4.0, 8.0], seed=1, seed2=2)
        """,
    ),
    "ComputeAccidentalHits": (
        "",
        "ComputeAccidentalHits(true_classes=[[0, 3], [4, 1]], sampled_candidates=[3, 4, 2], num_true=2)",
    ),
}
