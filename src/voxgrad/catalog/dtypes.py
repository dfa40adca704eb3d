# SPDX-License-Identifier: Apache-2.0
"""Element types under TensorFlow's names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DType:
    """An element type: its name here, its bytes, its kind and its number in TensorFlow's DataType enum."""

    name: str
    itemsize: int
    kind: str
    enum_name: str
    enum: int

    def __str__(self) -> str:
        return self.name

    @property
    def is_floating(self) -> bool:
        """True for half, bfloat16, float32 and float64."""
        return self.kind == "float"


HALF = DType("half", 2, "float", "DT_HALF", 19)
BFLOAT16 = DType("bfloat16", 2, "float", "DT_BFLOAT16", 14)
FLOAT32 = DType("float32", 4, "float", "DT_FLOAT", 1)
FLOAT64 = DType("float64", 8, "float", "DT_DOUBLE", 2)
INT8 = DType("int8", 1, "int", "DT_INT8", 6)
INT16 = DType("int16", 2, "int", "DT_INT16", 5)
INT32 = DType("int32", 4, "int", "DT_INT32", 3)
INT64 = DType("int64", 8, "int", "DT_INT64", 9)
UINT8 = DType("uint8", 1, "uint", "DT_UINT8", 4)
UINT16 = DType("uint16", 2, "uint", "DT_UINT16", 17)
UINT32 = DType("uint32", 4, "uint", "DT_UINT32", 22)
UINT64 = DType("uint64", 8, "uint", "DT_UINT64", 23)
BOOL = DType("bool", 1, "bool", "DT_BOOL", 10)
COMPLEX64 = DType("complex64", 8, "complex", "DT_COMPLEX64", 8)
COMPLEX128 = DType("complex128", 16, "complex", "DT_COMPLEX128", 18)
QINT8 = DType("qint8", 1, "int", "DT_QINT8", 11)
QUINT8 = DType("quint8", 1, "uint", "DT_QUINT8", 12)
QINT32 = DType("qint32", 4, "int", "DT_QINT32", 13)
QINT16 = DType("qint16", 2, "int", "DT_QINT16", 15)
QUINT16 = DType("quint16", 2, "uint", "DT_QUINT16", 16)
STRING = DType("string", 0, "string", "DT_STRING", 7)
RESOURCE = DType("resource", 0, "resource", "DT_RESOURCE", 20)

ALL = (
    HALF, BFLOAT16, FLOAT32, FLOAT64, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, BOOL,
    COMPLEX64, COMPLEX128, STRING, RESOURCE,
)  # fmt: skip
FLOATING = (HALF, BFLOAT16, FLOAT32, FLOAT64)
REAL = (FLOAT32, FLOAT64, INT32, UINT8, INT16, INT8, INT64, BFLOAT16, UINT16, HALF, UINT32, UINT64)
INTEGERS = (INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64)
SIGNED = (*FLOATING, INT8, INT16, INT32, INT64)
COMPLEX = (COMPLEX64, COMPLEX128)
ANALYTIC = (*FLOATING, *COMPLEX)
NUMBER = (*REAL, *COMPLEX)
INDEX = (INT32, INT64)
QUANTISED = (QINT8, QUINT8, QINT32, QINT16, QUINT16)
"""Integers that stand for floats of a range that is told beside them."""

_BY_NAME = {dtype.name: dtype for dtype in (*ALL, *QUANTISED)}
_BY_NAME |= {dtype.enum_name: dtype for dtype in (*ALL, *QUANTISED)}
_PLAIN = {dtype: _BY_NAME[dtype.name[1:]] for dtype in QUANTISED}
_BY_NAME |= {"float16": HALF, "float": FLOAT32, "double": FLOAT64, "int": INT32, "str": STRING}


def named(name: str) -> DType | None:
    """The type with this name (`half`, `float16`, `DT_HALF`), or None."""
    return _BY_NAME.get(name)


def plain(dtype: DType) -> DType:
    """The type in which arrays hold elements: quantised integers are plain ones there."""
    return _PLAIN.get(dtype, dtype)
