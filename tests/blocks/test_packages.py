# SPDX-License-Identifier: Apache-2.0
"""Blocks that installed packages bring: found by their metadata, used like any other, held to their declarations."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import voxgrad as vg
from tests.blocks.installing import TEMPLATE, install, install_template
from tests.studio.serving import environment
from voxgrad.catalog import packages, registry
from voxgrad.formats import page_file
from voxgrad.formats.script import export_script

X = np.random.default_rng(0).integers(-8, 9, (1, 3, 4, 5, 2)).astype(np.float64)
ONE = """
    OPS = (Op("Twice", "", "Two times.", (Input("x", "T", "A tensor."),),
              outputs=(Output("y", "T", "The double."),), types={{"T": REAL}}, infer={rule}, kernel="{kernel}",
              gradient={gradient}),)
"""


def declared(rule: str = 'like("x")', kernel: str = "twice_compute:twice", gradient: str = "None") -> str:
    return ONE.format(rule=rule, kernel=kernel, gradient=gradient)


def page_of(op: str = "twice.Twice") -> vg.Page:
    page = vg.Page("own")
    x = vg.ops.Const(page, X, name="x")
    page.add(op, {"x": x}, name="y")
    page.expose({"y": page["y"].output("y")})
    return page


def blurred(x: np.ndarray, radius: int) -> np.ndarray:
    """The definition, cell by cell."""
    padded = np.pad(x, [(0, 0), *[(radius, radius)] * 3, (0, 0)])
    y = np.zeros_like(x)
    for d, h, w in np.ndindex(x.shape[1:4]):
        side = 2 * radius + 1
        y[:, d, h, w] = padded[:, d : d + side, h : h + side, w : w + side].sum(axis=(1, 2, 3)) / side**3
    return y


# The template


def test_an_op_of_a_package_computes_at_once(site: Path) -> None:
    install_template(site)
    blur = vg.blocks.raw_ops.boxblur.BoxBlur
    assert np.allclose(blur(x=X, radius=1), blurred(X, 1))
    assert "The mean of the cells around" in blur.__doc__ and list(vg.blocks.names()) == ["boxblur"]
    assert dir(vg.blocks.raw_ops.boxblur) == ["BoxBlur"]
    with pytest.raises(vg.InvalidArgumentError, match=r"boxblur\.BoxBlur: radius must be 0 or more; got -1"):
        blur(x=X, radius=-1)
    with pytest.raises(vg.InvalidArgumentError, match="VG010"):
        blur(x=X[0])
    with pytest.raises(AttributeError, match="VG090"):
        _ = vg.blocks.raw_ops.boxblur.Sharpen
    with pytest.raises(AttributeError, match="no package 'sharpen'"):
        _ = vg.blocks.ops.sharpen


def test_its_example_prints_what_it_says(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    op = registry.find("boxblur.BoxBlur") if install_template(site) else None
    assert op is not None
    exec(op.example, {"np": np, "vg": vg})
    assert "".join(capsys.readouterr().out.split()) == "".join(op.example.rsplit("# ", 1)[1].split())


def test_it_is_a_block_with_shapes_and_gradients_of_any_order(site: Path) -> None:
    install_template(site)
    page = vg.Page("blur")
    x = vg.ops.Placeholder(page, dtype="float64", shape=["N", "D", "H", "W", 2], name="x")
    y = vg.blocks.ops.boxblur.BoxBlur(page, x, radius=1)
    assert y.block.name == "BoxBlur" and str(y.shape) == "(N, D, H, W, 2)"
    loss = vg.ops.Sum(page, vg.ops.Square(page, y), [0, 1, 2, 3, 4], name="loss")
    (dx,) = vg.gradients([loss], [x])
    v = np.random.default_rng(1).standard_normal(X.shape)
    (ddx,) = vg.gradients([dx], [x], grad_ys=[v])
    found, second = vg.ClientSession(page).run([dx, ddx], {"x": X})
    assert np.allclose(found, blurred(2 * blurred(X, 1), 1))
    assert np.allclose(second, blurred(2 * blurred(v, 1), 1))
    assert all(check.passed for check in vg.check_gradients(page, [loss], feeds={"x": X}))


def test_half_and_torch_keep_their_kind(site: Path) -> None:
    install_template(site)
    half = vg.blocks.raw_ops.boxblur.BoxBlur(x=X.astype(np.float16), radius=1)
    assert half.dtype == np.float16 and np.allclose(half, blurred(X, 1), atol=1e-2)


@pytest.mark.parity
def test_tensors_of_torch_come_back_as_such(site: Path) -> None:
    torch = pytest.importorskip("torch", reason="an optional array kind")
    install_template(site)
    made = vg.blocks.raw_ops.boxblur.BoxBlur(x=torch.from_numpy(X), radius=1)
    assert isinstance(made, torch.Tensor) and np.allclose(made.numpy(), blurred(X, 1))


def test_its_script_runs_by_itself(site: Path, tmp_path: Path) -> None:
    install_template(site)
    script = export_script(page_of("boxblur.BoxBlur"))
    assert "from voxgrad import blocks, ops\n" in script.text and "blocks.ops.boxblur.BoxBlur(" in script.text
    (tmp_path / "page.py").write_text(script.text)
    run = subprocess.run([sys.executable, str(tmp_path / "page.py")], capture_output=True, text=True, env=environment())
    assert run.stdout.startswith("y: float64 [1, 3, 4, 5, 2]"), run.stderr
    with pytest.raises(vg.VoxgradError, match=r"VG054 .*boxblur\.BoxBlur of the package boxblur 1\.0"):
        export_script(page_of("boxblur.BoxBlur"), "tensorflow")


def test_a_page_opens_and_is_saved_without_the_package(site: Path, tmp_path: Path) -> None:
    install_template(site)
    page = page_of("boxblur.BoxBlur")
    page.set_attr("y", "radius", 2)
    page.save(tmp_path / "with.vox.json")
    for place in site.iterdir():
        place.rename(tmp_path / place.name)
    packages.forget()
    without = vg.Page.load(tmp_path / "with.vox.json")
    (problem,) = without.problems()
    assert str(problem.fault).startswith("VG090 boxblur.BoxBlur: ") and "boxblur, which is not installed" in problem.got
    assert problem.block == "y" and without["y"].attrs == {"radius": 2}
    without.save(tmp_path / "without.vox.json")
    assert (tmp_path / "with.vox.json").read_bytes() == (tmp_path / "without.vox.json").read_bytes()
    with pytest.raises(vg.InvalidArgumentError, match="VG090"):
        vg.ClientSession(without).run("y.y")


@pytest.mark.slow
def test_pip_installs_the_template(tmp_path: Path) -> None:
    pytest.importorskip("setuptools", "77", reason="builds the package")
    source = shutil.copytree(TEMPLATE, tmp_path / "source")
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
    made = subprocess.run([*command, "--target", str(tmp_path), str(source)], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    path = {"PYTHONPATH": f"{tmp_path}:{environment()['PYTHONPATH']}"}
    tests = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", "/dev/null", str(source / "tests")]
    run = subprocess.run(tests, capture_output=True, text=True, env=environment() | path, cwd=tmp_path)
    assert run.returncode == 0 and "3 passed" in run.stdout, run.stdout + run.stderr


# What is loaded, and when


def test_nothing_is_loaded_before_it_is_asked_for(site: Path) -> None:
    install_template(site)
    code = """if True:
        import sys, voxgrad as vg
        assert not {"importlib.metadata", "voxgrad.blocks", "boxblur"} & set(sys.modules)
        page = vg.Page("p")
        x = vg.ops.Placeholder(page, dtype="float32", shape=[1, 2, 2, 2, 1])
        assert "boxblur" not in sys.modules
        y = vg.blocks.ops.boxblur.BoxBlur(page, x)
        assert y.shape == (1, 2, 2, 2, 1) and "boxblur.compute" not in sys.modules
        vg.ClientSession(page).run(y, {"Placeholder": [[[[[1.], [1.]]] * 2] * 2]})
        assert "boxblur.compute" in sys.modules
    """
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment())
    assert run.returncode == 0, run.stderr


def test_a_page_imports_nothing_but_installed_packages(site: Path) -> None:
    (site / "lying_about.py").write_text("raise SystemExit('imported')")
    for name in ("lying_about.Anything", "lying_about:Anything", "antigravity.Fly", "boxblur..Blur", "..", "a.b.c"):
        page = page_of(name)
        assert [one.code for one in page.problems()] == ["VG090" if name.split(".")[0].isidentifier() else "VG050"], (
            name
        )
    assert not {"lying_about", "antigravity"} & set(sys.modules)


def test_a_package_cannot_stand_in_for_others(site: Path) -> None:
    install(site, "Two-Words", declared(kernel="two_words_compute:twice").replace('"Twice"', '"Conv3D"'))
    assert list(packages.package("two_words").ops) == ["two_words.Conv3D"]
    assert registry.find("Conv3D").package == "" and registry.find("two_words.Conv3D").package == "Two-Words 0.1"


# Packages that fail


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import no_such_module_here", "ModuleNotFoundError"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("OPS = 7", "must be a sequence of declarations"),
        ("OPS = ('Twice',)", "be a voxgrad.blocks.Op each"),
        (declared(kernel="twice"), "kernel must name the function"),
        (declared().replace('"Twice"', '"a.b"'), "name must be an identifier"),
        (declared().replace("REAL}", "REAL}, attrs=(Attr('x', 'int', ''),)"), "that no other argument has"),
        (declared().replace("REAL}", "REAL}, attrs=(Attr('n', 'number', ''),)"), "have one of the kinds"),
        (declared().replace('{"T": REAL}', "{}"), "be of an element type"),
        (declared() + "    OPS *= 2\n", "no other op of it has"),
    ],
)
def test_one_that_does_not_load_says_why(site: Path, code: str, said: str) -> None:
    install(site, "twice", code)
    found = packages.package("twice")
    assert found is not None and said in found.error and not found.ops
    (problem,) = page_of().problems()
    assert problem.code == "VG090" and "twice 0.1, which does not load" in problem.got
    assert len(registry.everything()) == len(registry.OPS)


@pytest.mark.parametrize(
    ("compute", "said"),
    [
        ("def twice(x): return 1 / 0", r"function must run, as the package twice 0\.1 has it; got ZeroDivisionError"),
        ("def twice(x): raise SystemExit", "got SystemExit"),
        ("def twice(x): return (2 * x).astype('float32')", "y must be of the declared type, float64; got float32"),
        ("def twice(x): return x[0]", r"y must have the shape that its rule says, \[1,3,4,5,2\]; got \[3,4,5,2\]"),
        ("def twice(x): x *= 2; return x", "read-only"),
        ("def once(x): return x", "AttributeError"),
        ("import no_such_module_here", "ModuleNotFoundError"),
    ],
)
def test_a_function_that_fails_names_its_package_and_block(site: Path, compute: str, said: str) -> None:
    install(site, "twice", declared(), compute)
    with pytest.raises(vg.VoxgradError, match=f"VG091.*{said}") as caught:
        vg.ClientSession(page_of()).run("y.y")
    assert "twice 0.1" in str(caught.value) and caught.value.faults[0].argument.startswith("y")
    with pytest.raises(vg.VoxgradError, match=f"VG091.*{said}"):
        vg.blocks.raw_ops.twice.Twice(x=X)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("lambda call, faults: 1 / 0", "ZeroDivisionError"),
        ("lambda call, faults: (1, 2)", "return a Spec for each of 1"),
    ],
)
def test_a_shape_rule_that_fails_is_a_problem_of_its_block(site: Path, rule: str, said: str) -> None:
    install(site, "twice", declared(rule))
    (problem,) = page_of().problems()
    assert problem.code == "VG091" and said in str(problem.fault) and "twice 0.1" in problem.wanted


@pytest.mark.parametrize(
    ("rule", "said"),
    [("lambda build, node, dys: 1 / 0", "ZeroDivisionError"), ("lambda build, node, dys: ()", "for each of 1 inputs")],
)
def test_a_gradient_that_fails_names_its_package(site: Path, rule: str, said: str) -> None:
    install(site, "twice", declared(gradient=rule))
    page = page_of()
    with pytest.raises(vg.UnimplementedError, match=f"VG091.*{said}"):
        vg.gradients([page["y"].output(0)], [page["x"].output(0)])
    assert len(page) == 2


def test_what_a_package_computes_is_what_a_page_shows(site: Path) -> None:
    rule = "of_unary(lambda build, x, y, dy: build.twice.Twice(dy))"
    install(site, "twice", declared(gradient=rule), "def twice(x): return 2 * x")
    page = page_of()
    (dx,) = vg.gradients([page["y"].output(0)], [page["x"].output(0)])
    y, slope = vg.ClientSession(page).run(["y.y", dx])
    assert (y == 2 * X).all() and (slope == 2).all()
    assert page_file.loads(page_file.dumps(page)).to_dict().keys() == page.to_dict().keys()
