"""More of the same: programs that lean on what stands around modules and optimizers."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np


def agents(lib: Any) -> list[float]:
    """Bounded actions from buffers that numpy sizes and indexes, clipped ratios, an optimizer of one's own."""
    nn, dists = lib.nn, lib.distributions
    seen, wide = np.array((3, 2)), np.int64(8)
    shuffled = np.random.default_rng(5)

    class Signed(lib.optim.Optimizer):
        def __init__(self, params: Any, lr: float, keep: float = 0.9) -> None:
            super().__init__(params, {"lr": lr, "keep": keep})

        @lib.no_grad()
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for p in (p for p in group["params"] if p.grad is not None):
                    state = self.state[p]
                    if not state:
                        state["mean"] = lib.zeros_like(p)
                    state["mean"].mul_(group["keep"]).add_(p.grad, alpha=1 - group["keep"])
                    p.add_(state["mean"].sign(), alpha=-group["lr"])

    class Actor(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(seen.prod(), wide), nn.Tanh())
            self.mean, self.value = nn.Linear(wide, 2), nn.Linear(wide, 1)
            self.spread = nn.Parameter(lib.zeros(1, 2))
            self.register_buffer("reach", lib.tensor((np.ones(2) * 4 - 1) / 2, dtype=lib.float32))
            nn.init.orthogonal_(self.mean.weight, np.sqrt(2) / 100)

        def forward(self, x: Any) -> Any:
            h = self.inner(x.flatten(1))
            distribution = dists.Normal(self.mean(h), self.spread.exp().expand(len(x), 2))
            bounds = [dists.TanhTransform(cache_size=1), dists.AffineTransform(0.0, self.reach)]
            return (
                dists.Independent(dists.TransformedDistribution(distribution, bounds), 1),
                distribution,
                self.value(h).flatten(),
            )

    actor = Actor()
    optimizer = Signed(actor.parameters(), lr=1e-2)
    steps, sides = 6, 4
    views, rewards = lib.zeros((steps, sides, *seen)), lib.zeros((steps, sides))
    done, gains = lib.zeros((steps, sides), dtype=lib.bool), lib.zeros((steps, sides))
    actions, chances, values = lib.zeros(steps, sides, 2), lib.zeros(steps, sides), lib.zeros(steps, sides)
    with lib.no_grad():
        view = lib.randn(sides, *seen)
        for t in range(steps):
            views[t] = view
            distribution, _, values[t] = actor(view)
            actions[t] = distribution.rsample()
            chances[t] = distribution.log_prob(actions[t].clamp(-1.49, 1.49))
            rewards[t] = np.float32(0.5) * actions[t].sum(-1) - np.float64(0.1)
            view, done[t] = lib.randn(sides, *seen), lib.as_tensor(shuffled.random(sides) < 0.2)
        later, last = actor(view)[2], 0
        for t in reversed(range(steps)):
            ahead = (values[t + 1] if t + 1 < steps else later) * ~done[t]
            gains[t] = last = rewards[t] + 0.99 * ahead - values[t] + 0.9 * last * ~done[t]
    flat = [x.flatten(0, 1) for x in (views, actions.clamp(-1.49, 1.49), chances, gains, gains + values)]
    order, results = np.arange(steps * sides), []
    for _ in range(2):
        shuffled.shuffle(order)
        for first in range(0, steps * sides, 8):
            x, a, before, gain, goal = (part[order[first : first + 8]] for part in flat)
            distribution, plain, value = actor(x)
            ratio = (distribution.log_prob(a) - before).exp()
            gain = (gain - gain.mean()) / (gain.std() + 1e-8)
            clipped = lib.max(-gain * ratio, -gain * ratio.clamp(0.8, 1.2)).mean()
            loss = clipped + np.float32(0.5) * (value - goal).square().mean() - 0.01 * plain.entropy().sum(1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            results += [loss.item(), ((ratio - 1).abs() > 0.2).float().mean().item()]
    return results


def experts(lib: Any) -> list[float]:
    """Tokens that go to two of several experts, layers computed again, weights averaged, a schedule in stages."""
    nn, F = lib.nn, lib.nn.functional
    averaged, again = lib.optim.swa_utils, lib.utils.checkpoint.checkpoint

    class Mixture(nn.Module):
        def __init__(self, dim: int, count: int) -> None:
            super().__init__()
            self.gate = nn.Linear(dim, count, bias=False)
            self.experts = nn.ModuleList([nn.Sequential(nn.Linear(dim, 2 * dim), nn.SiLU(), nn.Linear(2 * dim, dim))])
            self.experts += [copy.deepcopy(self.experts[0]) for _ in range(count - 1)]
            self.register_buffer("load", lib.zeros(count))

        def forward(self, x: Any) -> Any:
            flat = x.reshape(-1, x.shape[-1])
            weights, chosen = self.gate(flat).softmax(-1).topk(2, dim=-1)
            weights = weights / weights.sum(-1, keepdim=True)
            made = lib.zeros_like(flat)
            for i, expert in enumerate(self.experts):
                rows, slots = lib.where(chosen == i)
                if rows.numel():
                    made.index_add_(0, rows, expert(flat[rows]) * weights[rows, slots, None])
            if self.training:
                self.load.mul_(0.9).add_(F.one_hot(chosen, len(self.load)).float().mean((0, 1)), alpha=0.1)
            return made.view_as(x)

    layers = nn.ModuleList([nn.ModuleDict({"norm": nn.LayerNorm(8), "mix": Mixture(8, 3)}) for _ in range(2)])
    scale = nn.Parameter(lib.full((8,), 0.5))

    def run(x: Any) -> Any:
        size = scale.exp()  # closed over by what is computed again
        for layer in layers:
            x = x + again(lambda y, of=layer: of["mix"](of["norm"](y)) * size, x, use_reentrant=False)
        return x

    parameters = [*layers.parameters(), scale]
    optimizer = lib.optim.AdamW(parameters, lr=1e-2)
    schedules = lib.optim.lr_scheduler
    rise = schedules.LinearLR(optimizer, 0.1, total_iters=2)
    restarts = schedules.CosineAnnealingWarmRestarts(optimizer, T_0=2, T_mult=2)
    schedule = schedules.SequentialLR(optimizer, [rise, restarts], milestones=[2])
    moving = averaged.AveragedModel(layers, multi_avg_fn=averaged.get_ema_multi_avg_fn(0.8), use_buffers=True)
    x, results = lib.randn(2, 5, 8), []
    for _ in range(5):
        loss = F.mse_loss(run(x), x.flip(1))
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(parameters, np.float64(1.0))
        optimizer.step()
        schedule.step()
        moving.update_parameters(layers)
        results += [loss.item(), norm.item(), schedule.get_last_lr()[0]]
    return [*results, sum(v.double().sum().item() for v in moving.state_dict().values())]


def lessons(lib: Any) -> list[float]:
    """Steps of learning within a step of learning, gradients per sample, curvature, an ensemble as one."""
    nn, F, func = lib.nn, lib.nn.functional, lib.func
    model = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = lib.optim.Adam(model.parameters(), lr=1e-2)

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        return F.mse_loss(func.functional_call(model, parameters, (x,)), y)

    results = []
    for _ in range(2):
        total = 0
        for _ in range(2):
            x, height = lib.rand(6, 1) * 4 - 2, lib.rand(1) + 0.5
            mine, y = dict(model.named_parameters()), height * x.sin()
            for _ in range(2):
                gradient = func.grad(loss)(mine, x, y)
                mine = {name: p - 0.1 * gradient[name] for name, p in mine.items()}
            total = total + loss(mine, x, y)
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        results.append(total.item())
    plain = {name: p.detach() for name, p in model.named_parameters()}
    each = lib.vmap(func.grad(loss), in_dims=(None, 0, 0))(plain, x[:, None], y[:, None])
    results += [g.square().flatten(1).sum(1).max().item() for g in each.values()]
    bend = func.hessian(lambda w: loss({**plain, "2.weight": w}, x, y))(plain["2.weight"])
    results.append(lib.linalg.eigvalsh(bend.view(8, 8)).max().item())
    gradients = lib.vmap(func.jacrev(lambda t: func.functional_call(model, plain, t)))(x)
    stacked, buffers = func.stack_module_state([copy.deepcopy(model) for _ in range(3)])
    stacked = {name: p.detach() * lib.arange(1.0, 4.0).view(3, *(1,) * (p.ndim - 1)) for name, p in stacked.items()}
    together = lib.vmap(lambda p, b: func.functional_call(model, (p, b), (x,)))(stacked, buffers)
    return [*results, gradients.sum().item(), together.var(0).sum().item()]


def bounds(lib: Any) -> list[float]:
    """Weights that keep a form, dropout for SELU, a penalty on gradients, then pruning and training on."""
    nn, F, of = lib.nn, lib.nn.functional, lib.nn.utils.parametrizations
    critic = nn.Sequential(
        of.spectral_norm(nn.Linear(6, 8)), nn.SELU(), nn.AlphaDropout(0.2), of.weight_norm(nn.Linear(8, 8)), nn.SELU(),
        of.orthogonal(nn.Linear(8, 4)), nn.LeakyReLU(0.2), nn.Linear(4, 1),
    )  # fmt: skip
    optimizer = lib.optim.SGD(critic.parameters(), lr=0.02, momentum=0.5)
    results = []
    for _ in range(3):
        real, made = lib.randn(5, 6), lib.rand(5, 6)
        share = lib.rand(5, 1)
        between = (share * real + (1 - share) * made).requires_grad_()
        (gradient,) = lib.autograd.grad(critic(between).sum(), between, create_graph=True)
        loss = critic(made).mean() - critic(real).mean() + 10 * (gradient.norm(2, dim=1) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        results.append(loss.item())
    nn.utils.parametrize.remove_parametrizations(critic[3], "weight")
    nn.utils.prune.l1_unstructured(critic[3], "weight", amount=0.4)
    optimizer = lib.optim.RMSprop([p for p in critic.parameters() if p.requires_grad], lr=1e-3)
    for _ in range(2):
        loss = F.softplus(critic(lib.ones(2, 6))).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        results.append(loss.item())
    critic.eval()
    return [*results, critic[0].weight.norm().item(), (critic[3].weight == 0).sum().item(), len(critic.state_dict())]


def phonemes(lib: Any) -> list[float]:
    """Sounds of several lengths: packed layers with dropout, alignments, soft choices, images resized."""
    nn, F, rnn = lib.nn, lib.nn.functional, lib.nn.utils.rnn
    ears = nn.GRU(6, 8, num_layers=2, dropout=0.3, bidirectional=True, batch_first=True)
    mouth, words = nn.Linear(16, 5), nn.Embedding(5, 6)
    parameters = [*ears.parameters(), *mouth.parameters(), *words.parameters()]
    optimizer = lib.optim.NAdam(parameters, lr=1e-2)
    sounds = [lib.randn(n, 6) for n in (9, 12, 7)]
    lengths = lib.tensor([len(s) for s in sounds])
    said, counts, results = lib.randint(1, 5, (3, 3)), lib.tensor([3, 2, 3]), []
    for _ in range(3):
        batch = rnn.pad_sequence(sounds, batch_first=True)
        packed = rnn.pack_padded_sequence(batch, lengths, batch_first=True, enforce_sorted=False)
        heard, last = ears(packed)
        heard, found = rnn.pad_packed_sequence(heard, batch_first=True)
        scores = mouth(heard)
        aligned = F.ctc_loss(scores.log_softmax(-1).transpose(0, 1), said, found, counts, zero_infinity=True)
        choice = lib.distributions.RelaxedOneHotCategorical(lib.tensor(0.7), logits=scores[:, 0]).rsample()
        again = F.cosine_similarity(choice @ words.weight, batch[:, 0]).mean()
        small = F.interpolate(scores[:, None], size=(4, 3), mode="bilinear", antialias=True)
        loss = aligned - 0.1 * again + small.square().mean() + F.feature_alpha_dropout(last, 0.1, True).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        results += [aligned.item(), again.item(), loss.item()]
    return results


FURTHER = [agents, experts, lessons, bounds, phonemes]
