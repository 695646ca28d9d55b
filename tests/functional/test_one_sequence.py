"""One seed, one sequence: draws are torch's, in every layout, eagerly and in graphs, where they were called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import weft as flow
from weft import nn
from weft.launch import spawn_threads

B, S, P = flow.sbp.broadcast, flow.sbp.split, flow.sbp.partial_sum
SHAPE = (5, 7)
CHANCES = np.random.default_rng(0).uniform(0.1, 0.9, size=SHAPE).astype(np.float32)

LAYOUTS: dict[str, tuple[int, Any, Any]] = {  # ranks of the world, those of the placement, sbp
    "local": (1, None, None),
    "1 B": (1, [0], B),
    "1 S0": (1, [0], S(0)),
    "2 B": (2, [0, 1], B),
    "2 S0": (2, [0, 1], S(0)),
    "2 S1": (2, [0, 1], S(1)),
    "2 P": (2, [0, 1], P),
    "2 second": (2, [1], B),
    "4 grid": (4, [[0, 1], [2, 3]], (S(0), S(1))),
    "4 grid S0 S0": (4, [[0, 1], [2, 3]], (S(0), S(0))),  # a row each, and two for one
    "4 grid P B": (4, [[0, 1], [2, 3]], (P, B)),
    "4 part": (4, [3, 1], S(0)),
}

Where = dict[str, Any]
Draw = Callable[[Any, Where, Any, Any], Any]

# Each of a library, options that say where, chances that lie there, and a generator or None.
DRAWS: dict[str, Draw] = {
    "rand": lambda l, at, x, g: l.rand(*SHAPE, **at, **g),
    "randn": lambda l, at, x, g: l.randn(*SHAPE, **at, **g),
    "randn, few": lambda l, at, x, g: l.randn(3, 2, **flat(at), **g),
    "randn, double": lambda l, at, x, g: l.randn(*SHAPE, dtype=l.float64, **at, **g),
    "randn, nothing": lambda l, at, x, g: l.randn(0, 7, **flat(at), **g),
    "randint": lambda l, at, x, g: l.randint(3, 90, SHAPE, **at, **g),
    "randperm": lambda l, at, x, g: l.randperm(35, **flat(at), **g),
    "normal": lambda l, at, x, g: l.normal(x, 2.0, **g),
    "normal of two": lambda l, at, x, g: l.normal(x, x, **g),
    "bernoulli": lambda l, at, x, g: l.bernoulli(x, **g),
    "bernoulli, p": lambda l, at, x, g: l.bernoulli(x, 0.3, **g),
    "multinomial": lambda l, at, x, g: l.multinomial(x, 2, **g),
    "multinomial, again": lambda l, at, x, g: l.multinomial(x, 9, True, **g),
    "bernoulli_": lambda l, at, x, g: l.empty(*SHAPE, **at).bernoulli_(0.3, **g),
    "bernoulli_ of x": lambda l, at, x, g: l.empty(*SHAPE, **at).bernoulli_(x, **g),
    "uniform_": lambda l, at, x, g: l.empty(*SHAPE, **at).uniform_(-1, 3, **g),
    "normal_": lambda l, at, x, g: l.empty(*SHAPE, **at).normal_(1.0, 2.0, **g),
    "exponential_": lambda l, at, x, g: l.empty(*SHAPE, **at).exponential_(2.0, **g),
    "geometric_": lambda l, at, x, g: l.empty(*SHAPE, **at).geometric_(0.3, **g),
    "cauchy_": lambda l, at, x, g: l.empty(*SHAPE, **at).cauchy_(**g),
    "log_normal_": lambda l, at, x, g: l.empty(*SHAPE, **at).log_normal_(**g),
    "random_": lambda l, at, x, g: l.empty(*SHAPE, **at).random_(**g),
    "random_, whole": lambda l, at, x, g: l.empty(*SHAPE, dtype=l.int64, **at).random_(**g),
    "random_, bytes": lambda l, at, x, g: l.empty(*SHAPE, dtype=l.uint8, **at).random_(**g),
    "random_, to": lambda l, at, x, g: l.empty(*SHAPE, **at).random_(10, **g),
    "random_, from": lambda l, at, x, g: l.empty(*SHAPE, dtype=l.int64, **at).random_(3, 1 << 40, **g),
    "rand_like": lambda l, at, x, g: l.rand_like(x, **g),
    "randn_like": lambda l, at, x, g: l.randn_like(x, **g),
    "randint_like": lambda l, at, x, g: l.randint_like(x, 9, **g),
}
OWN: dict[str, Draw] = {  # from the rank's own source only
    "dropout": lambda l, at, x, g: l.nn.functional.dropout(x, 0.3),
    "dropout, in order": lambda l, at, x, g: l.nn.functional.dropout(l.relu(x.t().contiguous()), 0.3),
    "dropout of all": lambda l, at, x, g: l.nn.functional.dropout(x, 1.0),
    "dropout, of products in order": lambda l, at, x, g: l.nn.functional.dropout((x.t() * 2).contiguous(), 0.3),
    "dropout, unused": lambda l, at, x, g: (l.nn.functional.dropout(x, 0.3), l.rand(2, **flat(at)))[1],
    "dropout1d": lambda l, at, x, g: l.nn.functional.dropout1d(x.unsqueeze(2), 0.3),
    "dropout2d": lambda l, at, x, g: l.nn.functional.dropout2d(x[:, :, None, None], 0.3),
    "dropout3d": lambda l, at, x, g: l.nn.functional.dropout3d(x[:, :, None, None, None], 0.3),
    "alpha_dropout": lambda l, at, x, g: l.nn.functional.alpha_dropout(x, 0.3, True),
    "feature_alpha_dropout": lambda l, at, x, g: l.nn.functional.feature_alpha_dropout(x.unsqueeze(2), 0.3, True),
    "gumbel_softmax": lambda l, at, x, g: l.nn.functional.gumbel_softmax(x),
    "attention": lambda l, at, x, g: l.nn.functional.scaled_dot_product_attention(
        *[x.reshape(1, 1, *SHAPE)] * 3, dropout_p=0.3
    ),
}
TURNED: dict[str, Draw] = {  # by the order in memory, which global tensors don't have
    "dropout": lambda l, at, x, g: l.nn.functional.dropout(l.ones(6, 4).t() + 1, 0.3),
    "dropout of relu": lambda l, at, x, g: l.nn.functional.dropout(l.relu(x.t()), 0.3),
    "dropout of sum": lambda l, at, x, g: l.nn.functional.dropout((x @ x.t()).t() + x.sum(), 0.3),
    "bernoulli": lambda l, at, x, g: l.bernoulli(l.sigmoid(x.t())),
    "poisson": lambda l, at, x, g: l.poisson(l.sigmoid(x.t()) * 9),
    "rrelu": lambda l, at, x, g: l.nn.functional.rrelu(x.t() - 0.5, training=True),
    "alpha_dropout": lambda l, at, x, g: l.nn.functional.alpha_dropout(x.t() * 2, training=True),
    "feature_alpha_dropout": lambda l, at, x, g: l.nn.functional.feature_alpha_dropout(x.t() * 2, training=True),
    "dropout2d": lambda l, at, x, g: l.nn.functional.dropout2d(x.t()[:, :, None]),
    "rand_like": lambda l, at, x, g: l.rand_like(x.t()),
    "randn_like": lambda l, at, x, g: l.randn_like(x.t() + 1),
    "randn_like of columns": lambda l, at, x, g: l.randn_like(x[:, 1:5]),
    "randint_like": lambda l, at, x, g: l.randint_like(x.t(), 3, 90),
    **{
        f"{distribution}_ {how}": lambda l, at, x, g, distribution=distribution, p=p, f=f: getattr(
            f((x * 2).detach()), f"{distribution}_"
        )(*p)
        for distribution, p in {
            "uniform": (2, 3),
            "normal": (),
            "exponential": (),
            "geometric": (0.3,),
            "random": (2, 9),
            "bernoulli": (0.3,),
            "cauchy": (),
            "log_normal": (),
        }.items()
        for how, f in {"turned": lambda y: y.t(), "columns": lambda y: y[:, 1:5], "steps": lambda y: y[:, ::2]}.items()
    },
    "trunc_normal_": lambda l, at, x, g: l.nn.init.trunc_normal_((x * 2).detach().t()),
    "xavier_normal_": lambda l, at, x, g: l.nn.init.xavier_normal_((x * 2).detach()[:, 1:5]),
}
BY_DATA: dict[str, Draw] = {  # take as much of the sequence as the data asks for
    "rrelu": lambda l, at, x, g: l.nn.functional.rrelu(x - 0.5, training=True),
    "poisson": lambda l, at, x, g: l.poisson(x * 9, **g),
    "binomial": lambda l, at, x, g: l.binomial(l.ones_like(x) * 9, x, **g),
}


def flat(at: Where) -> Where:
    """Of something short: whole."""
    return {**at, "sbp": (B,) * at["placement"].ndim} if at else at


def drawn(lib: Any, at: Where, x: Any, table: dict[str, Draw], generator: Any = None) -> list[Any]:
    named = {} if generator is None else {"generator": generator}
    return [draw(lib, at, x, named) for draw in table.values()]


class Draws(nn.Graph):
    """All of them, one after another, behind what else it is to do first."""

    def __init__(self, at: Where, table: dict[str, Draw], generator: Any = None, first: Any = None) -> None:
        super().__init__()
        self.at, self.table, self.generator, self.first = at, table, generator, first

    def build(self, x: Any) -> Any:
        if self.first is not None:
            self.first(flow)
        return drawn(flow, self.at, x, self.table, self.generator)


def place(layout: str) -> tuple[Where, Any]:
    _, ranks, sbp = LAYOUTS[layout]
    if ranks is None:
        return {}, flow.tensor(CHANCES)
    at = {"placement": flow.placement("cpu", ranks=ranks), "sbp": sbp}
    return at, flow.tensor(CHANCES, **flat(at)).to_global(sbp=sbp)


def values(found: list[Any]) -> list[np.ndarray]:
    return [np.asarray(t.numpy()) for t in found]


def differing(names: Iterable[str], found: list[np.ndarray], expected: list[Any]) -> list[str]:
    """The names of draws that gave something else, on whichever rank."""
    return [
        name
        for name, a, b in zip(names, found, map(torch.Tensor.numpy, expected), strict=True)
        if not (a.shape == b.shape and np.allclose(a, b, rtol=2e-6, atol=1e-6))
    ]


def both(layout: str, each: Callable[[str], Any]) -> None:
    """On each rank of a layout."""
    n = LAYOUTS[layout][0]
    for wrong in spawn_threads(n, each, layout, deadline=60):
        assert wrong == {}


def expected_of(program: Callable[[], list[list[Any]]]) -> tuple[list[list[Any]], float]:
    torch.manual_seed(5)
    return program(), torch.rand(1).item()


TORCH = torch.tensor(CHANCES)


def _eager(layout: str) -> dict[str, Any]:
    at, x = place(layout)
    table = {**DRAWS, **OWN, **BY_DATA}
    flow.manual_seed(5)
    found, after = drawn(flow, at, x, table), flow.rand(1).item()
    theirs, theirs_after = EAGER
    wrong = {"eager": differing(table, values(found), theirs[0]), "after": after != theirs_after}
    return {k: v for k, v in wrong.items() if v}


def _whole(table: dict[str, Draw], generator: Any = None) -> list[Any]:
    return drawn(torch, {}, TORCH, table, generator)


EAGER = expected_of(lambda: [_whole({**DRAWS, **OWN, **BY_DATA})])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_eager_draws_are_torchs(layout: str) -> None:
    both(layout, _eager)


def _in_graphs(table: dict[str, Draw]) -> tuple[list[list[Any]], float]:
    def program() -> list[list[Any]]:
        found = [_whole(table), _whole(table)]
        torch.manual_seed(6)
        found += [_whole(table), [torch.rand(2)]]
        for _ in range(3):
            _whole(table)
            torch.rand(1)
        found.append(_whole(table))
        return found

    return expected_of(program)


COVERED, PARTLY = {**DRAWS, **OWN, **BY_DATA}, {**DRAWS, **OWN}
IN_GRAPHS = {True: _in_graphs(COVERED), False: _in_graphs(PARTLY)}


def _graph(layout: str) -> dict[str, Any]:
    at, x = place(layout)
    covers = "second" not in layout and "part" not in layout
    table = COVERED if covers else PARTLY
    theirs, theirs_after = IN_GRAPHS[covers]
    graph = Draws(at, table)
    flow.manual_seed(5)
    found = [graph(x), graph(x)]
    flow.manual_seed(6)  # while the launches may be under way
    found += [graph(x), [flow.rand(2)]]
    for _ in range(3):
        graph(x)  # nobody reads it
        flow.rand(1)
    found.append(graph(x))
    after = flow.rand(1).item()
    wrong: dict[str, Any] = {
        call: differing(table if call != "beside" else ["rand"], values(a), b)
        for call, a, b in zip(("first", "second", "reseeded", "beside", "last"), found, theirs, strict=True)
    }
    wrong["after"] = after != theirs_after
    return {k: v for k, v in wrong.items() if v}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_draws_of_graphs_are_torchs(layout: str) -> None:
    both(layout, _graph)


# ---- in the order of memory ----------------------------------------------------------------------------------------


def test_draws_over_turned_tensors_go_through_memory_as_torchs() -> None:
    theirs, _ = expected_of(lambda: [_whole(TURNED), _whole(TURNED)])
    flow.manual_seed(5)
    x = flow.tensor(CHANCES)
    for found, expected in zip((drawn(flow, {}, x, TURNED), Draws({}, TURNED)(x)), theirs, strict=True):
        assert differing(TURNED, values(found), expected) == []


# ---- by a generator ------------------------------------------------------------------------------------------------

NAMED = {**DRAWS, "poisson": BY_DATA["poisson"], "binomial": lambda l, at, x, g: l.binomial(l.ones_like(x) * 9, x, **g)}
FEW = ["local", "2 S0", "2 second", "4 grid"]


def _named(layout: str) -> dict[str, Any]:
    at, x = place(layout)
    table = NAMED if layout != "2 second" else DRAWS
    theirs = torch.Generator().manual_seed(8)
    expected = [drawn(torch, {}, TORCH, table, theirs) for _ in range(3)]
    flow.manual_seed(5)
    generator = flow.Generator().manual_seed(8)
    graph = Draws(at, table, generator)
    found = [drawn(flow, at, x, table, generator), graph(x), graph(x)]
    after = flow.rand(1, generator=generator).item(), flow.rand(1).item()
    wrong: dict[str, Any] = {
        call: differing(table, values(a), b)
        for call, a, b in zip(("eager", "first", "second"), found, expected, strict=True)
    }
    own = torch.Generator().manual_seed(5)  # torch's default one is that of all threads
    wrong["after"] = after != tuple(torch.rand(1, generator=g).item() for g in (theirs, own))
    generator.manual_seed(8)
    wrong["seeded"] = differing(table, values(graph(x)), expected[0])
    return {k: v for k, v in wrong.items() if v}


@pytest.mark.parametrize("layout", FEW)
def test_a_generator_is_drawn_from_and_nothing_else_is(layout: str) -> None:
    both(layout, _named)


SPACES = {
    "flow": flow, "Tensor": flow.Tensor, "functional": nn.functional, "init": nn.init, "_C": flow._C, "nn": nn,
    "data": flow.utils.data,
}  # fmt: skip


def takes_a_generator(f: Any) -> bool:
    try:
        return "generator" in inspect.signature(f).parameters
    except (TypeError, ValueError):
        return False


def generated() -> Iterator[tuple[str, Any]]:
    """Every public function that takes a generator, by its signature."""
    for space, holder in SPACES.items():
        for name in dir(holder):
            f = getattr(holder, name, None)
            if not name.startswith("_") and callable(f) and takes_a_generator(f):
                yield f"{space}.{name}", f


# What to call them with, by name, where they lie anywhere: x holds chances, w is to be filled.
CALLS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(["rand", "randn"], lambda f, at, x, w, g: f(*SHAPE, **at, generator=g)),
    "randint": lambda f, at, x, w, g: f(9, SHAPE, **at, generator=g),
    "randperm": lambda f, at, x, w, g: f(9, **flat(at), generator=g),
    "normal": lambda f, at, x, w, g: f(0.0, 1.0, SHAPE, **at, generator=g),
    **dict.fromkeys(["rand_like", "randn_like", "bernoulli"], lambda f, at, x, w, g: f(x, generator=g)),
    **dict.fromkeys(["gumbel_softmax", "dropout"], lambda f, at, x, w, g: f(x, generator=g)),
    "randint_like": lambda f, at, x, w, g: f(x, 9, generator=g),
    "multinomial": lambda f, at, x, w, g: f(x, 2, generator=g),
    "geometric_": lambda f, at, x, w, g: f(w, 0.5, generator=g),
    "sparse_": lambda f, at, x, w, g: f(w, 0.5, generator=g),
    "fused_scale_tril_softmax_mask_scale": lambda f, at, x, w, g: f(
        x, p=0.5, diagonal=0, tril_scale_value=1.0, generator=g
    )[0],
    "Dropout": lambda f, at, x, w, g: f(generator=g)(x),
}
FILLS = [
    "bernoulli_", "cauchy_", "exponential_", "kaiming_normal_", "kaiming_uniform_", "log_normal_", "normal_",
    "orthogonal_", "random_", "trunc_normal_", "uniform_", "xavier_normal_", "xavier_uniform_",
]  # fmt: skip
CALLS |= dict.fromkeys(FILLS, lambda f, at, x, w, g: f(w, generator=g))


def call_of(name: str) -> Callable[..., Any]:
    space, _, short = name.partition(".")
    return CALLS[f"{short}_" if space == "init" and not short.endswith("_") else short]  # older names


def _each_generator(layout: str) -> dict[str, Any]:
    """Every call gives of one seed what it gives locally, and again, and leaves the rank's own source alone."""
    wrong: dict[str, Any] = {}
    for name, f in generated():
        if name.startswith("data.") or name == "init.drawing":
            continue
        found = []
        for at, x in (place("local"), place(layout), place(layout)):
            g = flow.Generator().manual_seed(8)
            w = flow.empty(*SHAPE, **at)
            flow.manual_seed(1)
            before = flow.get_rng_state().tolist()
            y = call_of(name)(f, at, x, w, g)
            found.append([np.asarray(y.numpy()), flow.rand(1, generator=g).item()])
            if flow.get_rng_state().tolist() != before and "sparse" not in name:  # whose zeros torch places by its own
                wrong[name] = "drew from the rank's own source"
        first, *others = found
        if any(b[1] != first[1] or not np.allclose(first[0], b[0], atol=1e-5) for b in others):
            wrong[name] = found
    return wrong


@pytest.mark.parametrize("layout", ["2 S0", "2 second"])
def test_every_function_that_takes_a_generator_draws_from_it(layout: str) -> None:
    named = [name for name, _ in generated()]
    assert len(named) > 50
    both(layout, _each_generator)


# ---- what draws by other means -------------------------------------------------------------------------------------


def modules(lib: Any) -> dict[str, Callable[[], Any]]:
    n = lib.nn
    return {
        "transformer": lambda: n.TransformerEncoderLayer(8, 2, 16, 0.3),
        "batch first": lambda: n.TransformerEncoderLayer(8, 2, 16, 0.3, batch_first=True),
        "decoder": lambda: n.TransformerDecoderLayer(8, 2, 16, 0.3, batch_first=True),
        "lstm": lambda: n.LSTM(8, 6, 3, dropout=0.3),
        "gru": lambda: n.GRU(8, 6, 2, dropout=0.3, batch_first=True, bidirectional=True),
        "attention": lambda: n.MultiheadAttention(8, 2, dropout=0.3),
        "dropouts": lambda: n.Sequential(
            n.Dropout(0.3), n.AlphaDropout(0.2), n.Dropout1d(0.3), n.FeatureAlphaDropout(0.3)
        ),
    }


def used(name: str, m: Any, x: Any) -> Any:
    many = {"attention": 3, "decoder": 2}.get(name, 1)
    y = m(*[x] * many)
    return y[0] if isinstance(y, tuple) else y


BATCH = np.random.default_rng(1).normal(size=(6, 4, 8)).astype(np.float32)
FILLED = [name for name in dir(nn.init) if name.endswith("_") and hasattr(torch.nn.init, name) and name[0] != "_"]
OPTIONS: dict[str, tuple[float, ...]] = {"constant_": (1.0,), "sparse_": (0.3,)}


def made_and_used(lib: Any, at: Where, lay: Callable[[Any], Any], road: Callable[[Any], Any]) -> list[Any]:
    """Modules as they are made, and what they drop; and weights as they are filled."""
    x, found = lib.tensor(BATCH, **at), []
    for name, make in modules(lib).items():
        m = lay(make())
        found += [*m.parameters(), road(lambda x, name=name, m=m: used(name, m, x))(x)]
    for name in FILLED:
        shape = (6, 4, 3) if name == "dirac_" else (6, 4)
        found.append(getattr(lib.nn.init, name)(lib.empty(*shape, **at), *OPTIONS.get(name, ())))
    return [t.detach() for t in found]


def _modules(layout: str, road: Callable[[Any], Any]) -> dict[str, Any]:
    _, ranks, sbp = LAYOUTS[layout]
    at: Where = {} if ranks is None else {"placement": flow.placement("cpu", ranks=ranks), "sbp": sbp}
    flow.manual_seed(5)
    found = made_and_used(flow, at, lambda m: m.to_global(**flat(at)) if at else m, road)
    theirs, after = MODULES
    names = [str(i) for i in range(len(theirs[0]))]
    wrong = {"values": differing(names, values(found), theirs[0]), "after": flow.rand(1).item() != after}
    return {k: v for k, v in wrong.items() if v}


MODULES = expected_of(lambda: [made_and_used(torch, {}, lambda m: m, lambda f: f)])


class Used(nn.Graph):
    def __init__(self, f: Callable[[Any], Any]) -> None:
        super().__init__()
        self.f = f

    def build(self, x: Any) -> Any:
        return self.f(x)


@pytest.mark.parametrize("layout", [*FEW, "2 S1"])
@pytest.mark.parametrize("road", [lambda f: f, Used], ids=["eager", "graph"])
def test_modules_draw_as_torchs(layout: str, road: Callable[[Any], Any]) -> None:
    for wrong in spawn_threads(LAYOUTS[layout][0], _modules, layout, road, deadline=60):
        assert wrong == {}


def dists(lib: Any, t: Callable[[Any], Any]) -> list[Any]:
    d, a, b, p = lib.distributions, t([0.3, 1.0]), t([1.0, 2.0]), t([0.3, 0.6])
    matrix = t([[1.0, 0.0], [0.0, 1.0]])
    two = "Normal Uniform Laplace Cauchy Gumbel LogNormal Gamma Beta InverseGamma Kumaraswamy Pareto VonMises Weibull"
    found = [getattr(d, name)(a, a + b) for name in two.split()] + [
        d.Normal(0.0, b),
        d.Gumbel(a, 2.0),
        d.StudentT(b + 3),
    ]
    found += [
        getattr(d, name)(b)
        for name in ["Exponential", "HalfNormal", "HalfCauchy", "Poisson", "Chi2", "StudentT", "Dirichlet"]
    ]
    found += [getattr(d, name)(p) for name in ["Bernoulli", "Geometric", "ContinuousBernoulli", "Categorical"]]
    return [
        *found, d.OneHotCategorical(p), d.Binomial(9, p), d.NegativeBinomial(b, p), d.Multinomial(5, p),
        d.FisherSnedecor(b, b), d.RelaxedBernoulli(t(0.5), p), d.RelaxedOneHotCategorical(t(0.5), p),
        d.LogisticNormal(a, b), d.MultivariateNormal(a, matrix),
        d.LowRankMultivariateNormal(a, t([[1.0], [1.0]]), b), d.MixtureSameFamily(d.Categorical(p), d.Normal(a, b)),
    ]  # fmt: skip


def sampled(lib: Any, t: Callable[[Any], Any]) -> list[Any]:
    return [distribution.sample((7,)) for distribution in dists(lib, t)]


LAWS = expected_of(lambda: [sampled(torch, torch.tensor)])


def _sampled(layout: str) -> dict[str, Any]:
    _, ranks, _ = LAYOUTS[layout]
    at: Where = {} if ranks is None else {"placement": flow.placement("cpu", ranks=ranks), "sbp": B}
    flow.manual_seed(5)
    found = sampled(flow, lambda v: flow.tensor(v, **at))
    names = [type(distribution).__name__ for distribution in dists(torch, torch.tensor)]
    wrong = {"values": differing(names, values(found), LAWS[0][0]), "after": flow.rand(1).item() != LAWS[1]}
    return {k: v for k, v in wrong.items() if v}


@pytest.mark.filterwarnings("ignore:.*has no layout rule")
@pytest.mark.parametrize("layout", ["local", "2 B"])
def test_laws_draw_as_torchs(layout: str) -> None:
    both(layout, _sampled)


@pytest.mark.parametrize("seed", [0, -1, 2**63 + 5, 2**64 - 1])
def test_seeds_have_64_bits(seed: int) -> None:
    flow.manual_seed(seed)
    torch.manual_seed(seed)
    state, first = flow.get_rng_state(), flow.rand(2).tolist()
    assert first == torch.rand(2).tolist()
    flow.set_rng_state(state)
    assert first == flow.rand(2).tolist() and flow.initial_seed() == torch.initial_seed()
    assert flow.Generator().manual_seed(seed).initial_seed() == torch.initial_seed()
    with pytest.raises(ValueError, match="verflow"):
        flow.manual_seed(2**70)
    assert flow.initial_seed() == torch.initial_seed()
