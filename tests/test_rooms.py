"""Where things are: what one looks for stands in the file that one would open first, and no folder is an attic."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest
import rustworkx as rx

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "weft").rglob("*.py"))
MOST = 25  # files in a folder
CORE = {"core", "tensor", "ops", "autograd", "interpreter", "boxing", "vm", "job", "compiler", "plan", "runtime",
        "simulator", "transport"}  # fmt: skip
NO_SUBJECT = {"more", "further", "rarer", "older", "pieces", "parts", "kinds", "places", "forms", "everyday", "breadth",
              "corners", "edges", "misc", "others", "extras"}  # fmt: skip
PYTORCHS = {"cuda.py", "functional.py", "rnn.py", "state_dict.py"}  # public paths, of which PyTorch has two of a name

# What somebody who knows PyTorch looks for, and where its documentation's chapters and its sources let them look.
GUESSES = {
    # "Indexing, Slicing, Joining, Mutating"
    "chunk": "functional/shape/splitting.py",
    "tensor_split": "functional/shape/splitting.py",
    "hstack": "functional/shape/joining.py",
    "cat": "ops/shape/joining.py",
    "permute": "functional/shape/views.py",
    "squeeze": "ops/shape/views.py",
    "tile": "functional/shape/repeating.py",
    "scatter_reduce": "functional/index/scattering.py",
    "take": "functional/index/taking.py",
    "masked_select": "functional/index/indexing.py",
    "index_select": "ops/index/indexing.py",
    # "Creation", "Random sampling"
    "arange": "functional/create/creation.py",
    "ones_like": "functional/create/likeness.py",
    "manual_seed": "functional/random/generators.py",
    "multinomial": "functional/random/sampling.py",
    "randperm": "functional/random/random_tensors.py",
    # "Pointwise"
    "clamp": "functional/pointwise/clamping.py",
    "addcmul": "functional/pointwise/arithmetic.py",
    "isreal": "functional/pointwise/complex_numbers.py",
    "polar": "functional/pointwise/complex_numbers.py",
    "frexp": "functional/pointwise/powers.py",
    "logical_xor": "ops/pointwise/logic.py",
    # "Reduction", "Comparison"
    "var_mean": "functional/reduce/variance.py",
    "nanmean": "functional/reduce/sums.py",
    "quantile": "functional/reduce/quantiles.py",
    "unique": "functional/reduce/counting.py",
    "topk": "functional/reduce/sorting.py",
    "allclose": "functional/pointwise/comparing.py",
    # "Other operations"
    "rot90": "functional/shape/flips.py",
    "meshgrid": "functional/shape/grids.py",
    "histc": "functional/reduce/histograms.py",
    "cummax": "functional/reduce/running.py",
    "diag_embed": "functional/shape/diagonals.py",
    "tril": "ops/shape/triangle.py",
    # linear algebra, Fourier transforms
    "einsum": "functional/linalg/einsum.py",
    "baddbmm": "functional/linalg/products.py",
    "svd": "functional/linalg/decompositions.py",
    "vector_norm": "functional/linalg/norms.py",
    "lstsq": "functional/linalg/solving.py",
    "cdist": "functional/linalg/distances.py",
    "stft": "functional/signal/fft.py",
    # nn.functional
    "interpolate": "functional/neural/interpolation.py",
    "cross_entropy": "functional/neural/cross_entropy.py",
    "conv_transpose2d": "functional/neural/convolution.py",
    "one_hot": "functional/neural/embeddings.py",
    # layers, in PyTorch's files
    "LazyConv2d": "nn/layers/conv.py",
    "EmbeddingBag": "nn/layers/sparse.py",
    "PixelShuffle": "nn/layers/pixelshuffle.py",
    "SyncBatchNorm": "nn/layers/batchnorm.py",
    "MultiheadAttention": "nn/layers/activation.py",
    # another fifty, guessed from the folders' lists of files
    "linspace": "functional/create/creation.py",
    "full_like": "functional/create/likeness.py",
    "eye": "functional/create/creation.py",
    "from_numpy": "functional/create/creation.py",
    "complex": "functional/pointwise/complex_numbers.py",
    "stack": "functional/shape/joining.py",
    "vstack": "functional/shape/joining.py",
    "swapaxes": "functional/shape/views.py",
    "movedim": "functional/shape/views.py",
    "narrow": "ops/shape/slicing.py",
    "unbind": "functional/shape/splitting.py",
    "flip": "functional/shape/flips.py",
    "roll": "ops/shape/flips.py",
    "gather": "ops/index/indexing.py",
    "index_add": "functional/index/scattering.py",
    "masked_fill": "functional/index/indexing.py",
    "nonzero": "functional/index/indexing.py",
    "take_along_dim": "functional/index/taking.py",
    "where": "functional/index/indexing.py",
    "bernoulli": "functional/random/sampling.py",
    "normal": "functional/random/sampling.py",
    "randint": "functional/random/random_tensors.py",
    "angle": "ops/pointwise/complex_numbers.py",
    "eq": "ops/pointwise/logic.py",
    "erf": "functional/pointwise/special.py",
    "floor_divide": "ops/pointwise/rounding.py",
    "isin": "functional/pointwise/comparing.py",
    "lerp": "functional/pointwise/arithmetic.py",
    "sqrt": "ops/pointwise/elementary.py",
    "view_as_real": "ops/pointwise/complex_numbers.py",
    "argmax": "ops/reduce/extremes.py",
    "bincount": "ops/reduce/counting.py",
    "bucketize": "functional/reduce/sorting.py",
    "count_nonzero": "functional/reduce/counting.py",
    "cumsum": "functional/reduce/running.py",
    "kthvalue": "functional/reduce/sorting.py",
    "logsumexp": "functional/reduce/sums.py",
    "prod": "functional/reduce/sums.py",
    "std": "functional/reduce/variance.py",
    "cross": "functional/linalg/products.py",
    "inv": "functional/linalg/solving.py",
    "kron": "functional/linalg/products.py",
    "matrix_power": "functional/linalg/products.py",
    "qr": "functional/linalg/decompositions.py",
    "tensordot": "functional/linalg/einsum.py",
    "dropout": "functional/neural/dropouts.py",
    "gelu": "ops/neural/activations.py",
    "mse_loss": "functional/neural/losses.py",
    "pad": "functional/neural/image_padding.py",
    "softmax": "functional/neural/softmax.py",
}


def says(file: str, name: str) -> bool:
    """Whether a file has something of this name at its top: a function, class, value, adapter or op."""
    path = ROOT / "weft" / file
    path = path if path.exists() else path.with_suffix(".pyi")  # what is derived from torch's has a stub alone
    if not path.exists():
        return False
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return True
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(x, ast.Name) and x.id == name for t in targets for x in ast.walk(t)):
                return True
        calls = [node.value] if isinstance(node, ast.Expr) else getattr(node, "decorator_list", [])
        if any(isinstance(x, ast.Constant) and str(x.value).split()[:1] == [name] for c in calls for x in ast.walk(c)):
            return True
    return False


def test_the_first_guess_opens_the_right_file() -> None:
    assert len(GUESSES) == 100
    missed = [f"{name}: not in {file}" for name, file in GUESSES.items() if not says(file, name)]
    assert len(missed) <= 6, "\n".join(missed)


@pytest.mark.parametrize("half", ["weft", "tests"])
def test_a_folder_has_a_subject_and_files_to_count(half: str) -> None:
    files = [p for p in (ROOT / half).rglob("*.py") if "__pycache__" not in p.parts]
    by_folder = defaultdict(list)
    for p in files:
        by_folder[p.parent].append(p)
    full = {str(f.relative_to(ROOT)): len(ps) for f, ps in by_folder.items() if len(ps) > MOST}
    assert not full, f"more than {MOST} files: {full}; which subjects do they have?"
    vague = [str(p.relative_to(ROOT)) for p in files if p.stem.removeprefix("test_") in NO_SUBJECT]
    assert not vague, f"named after no subject: {vague}"


@pytest.mark.parametrize("core", [True, False])
def test_a_file_name_means_one_thing_in_its_half(core: bool) -> None:
    found = defaultdict(list)
    for p in FILES:
        place = p.relative_to(ROOT / "weft")
        if len(place.parts) > 1 and (place.parts[0] in CORE) is core and not p.name.startswith("__"):
            found[p.name].append(place.as_posix())
    twice = [places for name, places in found.items() if len(places) > 1 and name not in PYTORCHS]
    assert not twice, "\n".join(map(str, twice))


def imports(tree: ast.Module, modules: set[str]) -> set[str]:
    """The files that a file imports, for type checkers too."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full in modules else node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & modules


def test_no_files_import_each_other_in_a_circle() -> None:
    modules = {".".join(p.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): p for p in FILES}
    graph = rx.PyDiGraph()
    node = {name: graph.add_node(name) for name in modules}
    for name, path in modules.items():
        for other in imports(ast.parse(path.read_text()), set(modules)) - {name}:
            graph.add_edge(node[name], node[other], None)
    circles = [sorted(graph[i] for i in c) for c in rx.strongly_connected_components(graph) if len(c) > 1]
    assert not circles, f"files in a circle, where a protocol or a move would part them: {circles}"
