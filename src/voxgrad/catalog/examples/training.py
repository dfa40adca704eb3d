# SPDX-License-Identifier: Apache-2.0
"""Steps of optimisers: every rule once, for variables, for handles, and for rows of both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule with what it keeps beside the variable, and its numbers. `dense` names the gradient of whole variables."""

    formula: str
    kept: tuple[str, ...]
    numbers: str
    dense: str = "grad"
    rows: bool = True


_PROXIMAL = "var = sign(p) * max(|p| - {0} * l1, 0) / (1 + {0} * l2)"
_RULES = {
    "GradientDescent": _Rule("var -= alpha * delta", (), "alpha=0.5", "delta", rows=False),
    "Momentum": _Rule("accum = momentum * accum + grad; var -= lr * accum", ("accum",), "lr=0.5, momentum=0.9"),
    "Adam": _Rule(
        "m = beta1 * m + (1 - beta1) * grad; v = beta2 * v + (1 - beta2) * grad**2; "
        "var -= lr * sqrt(1 - beta2_power) / (1 - beta1_power) * m / (sqrt(v) + epsilon)",
        ("m", "v"),
        "beta1_power=0.9, beta2_power=0.99, lr=0.5, beta1=0.9, beta2=0.99, epsilon=0.001",
        rows=False,
    ),
    "RMSProp": _Rule(
        "ms = rho * ms + (1 - rho) * grad**2; mom = momentum * mom + lr * grad / sqrt(ms + epsilon); var -= mom",
        ("ms", "mom"),
        "lr=0.5, rho=0.9, momentum=0.5, epsilon=0.001",
    ),
    "CenteredRMSProp": _Rule(
        "mg = rho * mg + (1 - rho) * grad; ms = rho * ms + (1 - rho) * grad**2; "
        "mom = momentum * mom + lr * grad / sqrt(ms - mg**2 + epsilon); var -= mom",
        ("mg", "ms", "mom"),
        "lr=0.5, rho=0.9, momentum=0.5, epsilon=0.001",
    ),
    "Adagrad": _Rule("accum += grad**2; var -= lr * grad / sqrt(accum)", ("accum",), "lr=0.5"),
    "Adadelta": _Rule(
        "accum = rho * accum + (1 - rho) * grad**2; u = grad * sqrt(accum_update + epsilon) / sqrt(accum + epsilon); "
        "accum_update = rho * accum_update + (1 - rho) * u**2; var -= lr * u",
        ("accum", "accum_update"),
        "lr=0.5, rho=0.9, epsilon=0.001",
    ),
    "Ftrl": _Rule(
        "a = accum + grad**2; linear += grad - (a**-lr_power - accum**-lr_power) / lr * var; accum = a; "
        "var = (sign(linear) * l1 - linear) / (a**-lr_power / lr + 2 * l2) if |linear| > l1 else 0",
        ("accum", "linear"),
        "lr=0.5, l1=0.1, l2=0.1, lr_power=-0.5",
    ),
    "ProximalGradientDescent": _Rule(
        f"p = var - alpha * delta; {_PROXIMAL.format('alpha')}", (), "alpha=0.5, l1=0.1, l2=0.1", "delta"
    ),
    "ProximalAdagrad": _Rule(
        f"accum += grad**2; p = var - lr * grad / sqrt(accum); {_PROXIMAL.format('lr / sqrt(accum)')}",
        ("accum",),
        "lr=0.5, l1=0.1, l2=0.1",
    ),
    "AdagradDA": _Rule(
        "g = gradient_accumulator += grad; s = gradient_squared_accumulator += grad**2; "
        "var = -sign(g) * max(|g| - l1 * global_step, 0) / (l2 * global_step + sqrt(s) / lr)",
        ("gradient_accumulator", "gradient_squared_accumulator"),
        "lr=0.5, l1=0.1, l2=0.1, global_step=1",
    ),
}


def _examples() -> Iterator[tuple[str, tuple[str, str]]]:
    for name, rule in _RULES.items():
        for rows in (False, True) if rule.rows else (False,):
            for keeper in ("variable", "handle"):
                head = ("Resource" if keeper == "handle" else "") + ("Sparse" if rows else "")
                formula = rule.formula.replace("delta", "grad") if rows else rule.formula
                more = ", on the rows named by indices" if rows else ""
                yield f"{head}Apply{name}", (formula + more, _text(f"{head}Apply{name}", rule, keeper, rows))


def _text(op: str, rule: _Rule, keeper: str, rows: bool) -> str:
    first = {"var": "[[1.0, 2.0], [3.0, 4.0]]" if rows else "[1.0, 2.0]"}
    first |= dict.fromkeys(rule.kept, "[[1.0, 1.0], [1.0, 1.0]]" if rows else "[1.0, 1.0]")
    lines = [f"{name} = {keeper}({value})" for name, value in first.items()]
    grad = "grad=[[0.5, -0.25]], indices=[1]" if rows else f"{rule.dense}=[0.5, -0.25]"
    given = ", ".join(f"{name}={name}" for name in first)
    lines.append(f"step = {op}({given}, {rule.numbers}, {grad})")
    if keeper == "handle":
        lines.append('now = ReadVariableOp(resource=var, dtype="float32", after=step)')
    return "\n".join(lines)


EXAMPLES = dict(_examples())
