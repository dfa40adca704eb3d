# SPDX-License-Identifier: Apache-2.0
"""Variables: what a session keeps from run to run."""

_ROWS = "v = variable([1.0, 2.0, 4.0])\nstep = {0}(ref=v, indices=[0, 2], updates=[10.0, 20.0])"
_SLICES = "v = variable([1.0, 2.0, 4.0])\nstep = {0}(ref=v, indices=[[0], [2]], updates=[10.0, 20.0])"
_VALUE = "v = variable([1.0, 2.0])\nstep = {0}(ref=v, value=[10.0, 20.0])"
_HANDLE = """
v = VarHandleOp(dtype="float32", shape=[2])
give = AssignVariableOp(resource=v, value=[1.0, 2.0])
now = ReadVariableOp(resource=v, dtype="float32", after=give)
"""
_TEMPORARY = """
v = TemporaryVariable(shape=[2], dtype="float32", var_name="sum")
give = Assign(ref=v, value=[1.0, 2.0])
more = AssignAdd(ref=give, value=[10.0, 20.0])
end = DestroyTemporaryVariable(ref=more, var_name="sum")
"""

EXAMPLES = {
    "VariableV2": ("", 'v = VariableV2(shape=[2], dtype="float32")\ngive = Assign(ref=v, value=[1.0, 2.0])'),
    "Variable": ("", 'v = Variable(shape=[2], dtype="float32")\ngive = Assign(ref=v, value=[1.0, 2.0])'),
    "VarHandleOp": ("", _HANDLE),
    "ReadVariableOp": ("", _HANDLE),
    "AssignVariableOp": ("resource = value", _HANDLE),
    "Assign": ("ref = value", _VALUE.format("Assign")),
    "AssignAdd": ("ref += value", _VALUE.format("AssignAdd")),
    "AssignSub": ("ref -= value", _VALUE.format("AssignSub")),
    "IsVariableInitialized": ("", "v = variable([1.0, 2.0])\nknown = IsVariableInitialized(ref=v)"),
    "CountUpTo": ("output = ref; ref += 1", "v = variable(3)\nnumber = CountUpTo(ref=v, limit=9)"),
    "TemporaryVariable": ("", _TEMPORARY),
    "DestroyTemporaryVariable": ("", _TEMPORARY),
    "ScatterUpdate": ("ref[indices[i]] = updates[i]", _ROWS.format("ScatterUpdate")),
    "ScatterAdd": ("ref[indices[i]] += updates[i]", _ROWS.format("ScatterAdd")),
    "ScatterSub": ("ref[indices[i]] -= updates[i]", _ROWS.format("ScatterSub")),
    "ScatterMul": ("ref[indices[i]] *= updates[i]", _ROWS.format("ScatterMul")),
    "ScatterDiv": ("ref[indices[i]] /= updates[i]", _ROWS.format("ScatterDiv")),
    "ScatterNdUpdate": ("ref[indices[i]] = updates[i]", _SLICES.format("ScatterNdUpdate")),
    "ScatterNdAdd": ("ref[indices[i]] += updates[i]", _SLICES.format("ScatterNdAdd")),
    "ScatterNdSub": ("ref[indices[i]] -= updates[i]", _SLICES.format("ScatterNdSub")),
}
