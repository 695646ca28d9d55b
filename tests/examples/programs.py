"""Small training programs, each a function of the library: `losses(torch)` and `losses(weft)` should be the same.

They are written as people write them, so that what they use is what is tried.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def images(lib: Any) -> list[float]:
    """Residual blocks over images, from a loader, with clipping and a schedule; accuracy, evaluation."""
    nn, F = lib.nn, lib.nn.functional
    device = lib.device("cuda" if lib.cuda.is_available() else "cpu")

    class Residual(nn.Module):
        def __init__(self, before: int, after: int, stride: int) -> None:
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(before, after, 3, stride=stride, padding=1, bias=False), nn.BatchNorm2d(after),
                nn.ReLU(inplace=True), nn.Conv2d(after, after, 3, padding=1, bias=False), nn.BatchNorm2d(after),
            )  # fmt: skip
            same = stride == 1 and before == after
            self.way = nn.Identity() if same else nn.Conv2d(before, after, kernel_size=1, stride=stride)

        def forward(self, x):
            y = self.body(x)
            y += self.way(x)
            return F.relu(y, inplace=True)

    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.MaxPool2d(3, 2, 1), Residual(8, 8, 1), Residual(8, 16, 2),
        nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.Linear(16, 10),
    ).to(device)  # fmt: skip
    for m in model.modules():
        if isinstance(m, nn.Conv2d):
            nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
    data = lib.utils.data.TensorDataset(lib.randn(24, 3, 16, 16), lib.randint(0, 10, (24,)))
    loader = lib.utils.data.DataLoader(data, batch_size=8, shuffle=True, drop_last=True)
    optimizer = lib.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True)
    schedule = lib.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
    results = []
    for _ in range(2):
        model.train()
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device)
            scores = model(x)
            loss = F.cross_entropy(scores, y, label_smoothing=0.1)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            results.append(nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0).item())
            optimizer.step()
            best = scores.topk(3, dim=1)[1]
            results += [
                loss.item(),
                best.eq(y.view(-1, 1)).any(1).float().sum().item(),
                (scores.argmax(1) == y).sum().item(),
            ]
        schedule.step()
    model.eval()
    with lib.no_grad():
        results.append(model(lib.ones(2, 3, 16, 16)).softmax(dim=-1).max().item())
    return results


def patches(lib: Any) -> list[float]:
    """A transformer over patches: a class token, positions, scaled layers, mixed images, groups of weights, a mean."""
    nn, F = lib.nn, lib.nn.functional

    class Layer(nn.Module):
        def __init__(self, dim: int, heads: int) -> None:
            super().__init__()
            self.heads, self.scale = heads, (dim // heads) ** -0.5
            self.first, self.second = nn.LayerNorm(dim, eps=1e-6), nn.LayerNorm(dim)
            self.all, self.out = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim)
            self.wide = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Dropout(0.0), nn.Linear(2 * dim, dim))
            self.size = nn.Parameter(0.1 * lib.ones(dim))

        def forward(self, x):
            b, n, c = x.shape
            q, k, v = self.all(self.first(x)).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
            weights = ((q @ k.transpose(-2, -1)) * self.scale).softmax(dim=-1)
            x = x + self.size * self.out((weights @ v).transpose(1, 2).reshape(b, n, c))
            return x + self.wide(self.second(x))

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cut = nn.Conv2d(3, 32, kernel_size=4, stride=4)
            self.token = nn.Parameter(lib.zeros(1, 1, 32))
            self.places = nn.Parameter(lib.empty(1, 17, 32))
            self.layers = nn.ModuleList([Layer(32, 4) for _ in range(2)])
            self.head = nn.Linear(32, 5)
            nn.init.trunc_normal_(self.places, std=0.02)
            self.apply(self.begin)

        def begin(self, m):
            if isinstance(m, nn.Linear):
                nn.init.xavier_uniform_(m.weight)
                if m.bias is not None:
                    nn.init.zeros_(m.bias)

        def forward(self, x):
            x = self.cut(x).flatten(2).transpose(1, 2)
            x = lib.cat((self.token.expand(x.shape[0], -1, -1), x), dim=1) + self.places
            for layer in self.layers:
                x = layer(x)
            return self.head(x[:, 0])

    model = Model()
    named = list(model.named_parameters())
    groups = [
        {"params": [p for n, p in named if p.ndim > 1], "weight_decay": 0.05},
        {"params": [p for n, p in named if p.ndim <= 1 or n.endswith("bias")], "weight_decay": 0.0},
    ]
    groups[1]["params"] = [p for p in groups[1]["params"] if p.ndim <= 1]
    optimizer = lib.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95))
    schedule = lib.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 3))
    scaler = lib.amp.GradScaler(enabled=False)
    x, y = lib.rand(6, 3, 16, 16), lib.randint(5, size=(6,))
    x = (x - lib.tensor([0.5, 0.4, 0.3]).view(1, 3, 1, 1)) / lib.tensor([0.2, 0.3, 0.2])[None, :, None, None]
    order, share, hot = lib.randperm(6), 0.3, F.one_hot(y, 5).float()
    x, target = share * x + (1 - share) * x[order], share * hot + (1 - share) * hot[order, :]
    mean = {k: v.detach().clone() for k, v in model.state_dict().items()}
    results: list[float] = []
    for _ in range(3):
        with lib.autocast(device_type="cpu", enabled=False):
            loss = lib.sum(-target * F.log_softmax(model(x), dim=-1), dim=-1).mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
        for k, v in model.state_dict().items():
            mean[k].mul_(0.9).add_(v, alpha=0.1)
        results += [loss.item(), norm.item(), optimizer.param_groups[0]["lr"]]
    results += [float(sum(p.numel() for p in model.parameters())), sum(v.double().norm().item() for v in mean.values())]
    return results


def language(lib: Any) -> list[float]:
    """A decoder with tied weights and a masked attention, gradients added up over parts, then text made greedily."""
    nn, F = lib.nn, lib.nn.functional
    vocabulary, width, length = 30, 16, 12

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.norms = nn.ModuleDict({"a": nn.LayerNorm(width), "b": nn.LayerNorm(width)})
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.register_buffer("past", lib.tril(lib.ones(length, length)).view(1, 1, length, length))

        def forward(self, x):
            b, t, c = x.size()
            q, k, v = (p.view(b, t, 2, c // 2).transpose(1, 2) for p in self.qkv(self.norms["a"](x)).split(c, dim=2))
            scores = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
            scores = scores.masked_fill(self.past[:, :, :t, :t] == 0, float("-inf"))
            y = F.softmax(scores, dim=-1) @ v
            y = (y + F.scaled_dot_product_attention(q, k, v, is_causal=True)) / 2
            x = x + self.out(y.transpose(1, 2).contiguous().view(b, t, c))
            return x + self.down(F.gelu(self.up(self.norms["b"](x)), approximate="tanh"))

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
            self.blocks = nn.Sequential(Block(), Block())
            self.head = nn.Linear(width, vocabulary, bias=False)
            self.words.weight = self.head.weight
            for name, p in self.named_parameters():
                if name.endswith("out.weight"):
                    nn.init.normal_(p, mean=0.0, std=0.01)

        def forward(self, ids, targets=None):
            x = self.words(ids) + self.places(lib.arange(ids.size(1), dtype=lib.long, device=ids.device))
            scores = self.head(self.blocks(x))
            if targets is None:
                return scores[:, [-1], :], None
            return scores, F.cross_entropy(scores.view(-1, scores.size(-1)), targets.view(-1), ignore_index=-1)

        @lib.no_grad()
        def write(self, ids, count: int):
            for _ in range(count):
                scores = self(ids[:, -length:])[0][:, -1, :]
                kept = lib.topk(scores, 5)[0]
                scores[scores < kept[:, [-1]]] = -float("inf")
                ids = lib.cat((ids, F.softmax(scores, dim=-1).argmax(-1, keepdim=True)), dim=1)
            return ids

    model, text = Model(), lib.randint(0, vocabulary, (300,))
    optimizer = lib.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95))
    results: list[float] = []
    for step in range(3):
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * (step + 1)
        for _ in range(2):
            at = lib.randint(len(text) - length, (4,))
            x = lib.stack([text[i : i + length] for i in at])
            y = lib.stack([text[i + 1 : i + 1 + length] for i in at])
            loss = model(x, y)[1]
            (loss / 2).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        results.append(loss.item())
    return results + [float(i) for i in model.eval().write(lib.zeros((1, 1), dtype=lib.long), 15)[0].tolist()]


def adversaries(lib: Any) -> list[float]:
    """A generator against a judge, with a penalty on the judge's gradient: gradients of gradients."""
    nn = lib.nn
    make = nn.Sequential(
        nn.ConvTranspose2d(8, 8, 4, 1, 0, bias=False), nn.BatchNorm2d(8), nn.ReLU(True),
        nn.ConvTranspose2d(8, 1, 4, 2, 1, bias=False), nn.Tanh(),
    )  # fmt: skip
    judge = nn.Sequential(
        nn.Conv2d(1, 4, 4, 2, 1), nn.LeakyReLU(0.2, inplace=True), nn.BatchNorm2d(4), nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(4, 1, 4), nn.Sigmoid(), nn.Flatten(0),
    )  # fmt: skip
    for m in [*make.modules(), *judge.modules()]:
        if type(m).__name__.startswith("Conv"):
            nn.init.normal_(m.weight.data, 0.0, 0.1)
    loss = nn.BCELoss()
    a, b = (lib.optim.Adam(m.parameters(), lr=2e-3, betas=(0.5, 0.999)) for m in (judge, make))
    results: list[float] = []
    for _ in range(3):
        real, fake = lib.randn(4, 1, 8, 8), make(lib.randn(4, 8, 1, 1))
        judge.zero_grad()
        label = lib.full((4,), 1.0, dtype=lib.float)
        right = loss(judge(real), label)
        right.backward()
        label.fill_(0.0)
        wrong = loss(judge(fake.detach()), label)
        wrong.backward()
        between = (lib.rand(4, 1, 1, 1) * (real - fake.detach()) + fake.detach()).requires_grad_(True)
        gradient = lib.autograd.grad(judge(between).sum(), between, create_graph=True)[0]
        penalty = ((gradient.view(4, -1).norm(2, dim=1) - 1) ** 2).mean()
        penalty.backward()
        a.step()
        make.zero_grad()
        fooled = loss(judge(fake), label.fill_(1.0))
        fooled.backward()
        b.step()
        results += [right.item(), wrong.item(), penalty.item(), fooled.item()]
    return [*results, float(make(lib.ones(1, 8, 1, 1)).detach().cpu().numpy().sum())]


def codes(lib: Any) -> list[float]:
    """A variational autoencoder, its divergence by formula and by distributions."""
    nn, F, dists = lib.nn, lib.nn.functional, lib.distributions
    inside, outside = nn.Linear(20, 8), nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 20))
    optimizer = lib.optim.Adam([*inside.parameters(), *outside.parameters()], lr=1e-2, amsgrad=True)
    x, results = lib.rand(8, 4, 5).view(-1, 20), []
    for _ in range(3):
        centre, spread = inside(x).chunk(2, dim=-1)
        code = centre + lib.randn_like(spread) * lib.exp(0.5 * spread)
        scores = outside(code)
        found = F.binary_cross_entropy(lib.sigmoid(scores), x, reduction="sum")
        results.append((found - F.binary_cross_entropy_with_logits(scores, x, reduction="sum")).abs().item() < 1e-3)
        away = -0.5 * lib.sum(1 + spread - centre.pow(2) - spread.exp())
        distribution = dists.Normal(centre, (0.5 * spread).exp())
        again = dists.kl_divergence(
            distribution, dists.Normal(lib.zeros_like(distribution.mean), lib.ones_like(distribution.stddev))
        ).sum()
        loss = found + 0.5 * away + 0.5 * again
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        results += [loss.item(), away.item() - again.item() < 1e-3]
    drawn = dists.Independent(distribution, 1).rsample()
    results += [
        dists.Independent(distribution, 1).log_prob(drawn).sum().item(),
        dists.Bernoulli(logits=scores).entropy().sum().item(),
    ]
    return [float(t) for t in results]


def sequences(lib: Any) -> list[float]:
    """Recurrent layers over cut text with carried state, and over sequences of several lengths."""
    nn, F = lib.nn, lib.nn.functional
    text = lib.randint(0, 20, (160,))
    columns = text.narrow(0, 0, 160).view(4, -1).t().contiguous()
    results: list[float] = []
    for kind in ("LSTM", "GRU", "RNN"):
        words, layer, head = nn.Embedding(20, 8, padding_idx=0), getattr(nn, kind)(8, 8, 2), nn.Linear(8, 20)
        head.weight = words.weight
        parameters = list({id(p): p for m in (words, layer, head) for p in m.parameters()}.values())
        state = None
        for at in range(0, 30, 10):
            if state is not None:
                state = tuple(s.detach() for s in state) if isinstance(state, tuple) else state.detach()
            y, state = layer(words(columns[at : at + 10]), state)
            loss = F.nll_loss(F.log_softmax(head(y).view(-1, 20), dim=1), columns[at + 1 : at + 11].reshape(-1))
            for p in parameters:
                p.grad = None
            loss.backward()
            nn.utils.clip_grad_norm_(parameters, 0.25)
            for p in parameters:
                p.data.add_(p.grad, alpha=-2.0)
            results.append(loss.item())
    tools, layer = nn.utils.rnn, nn.LSTM(3, 4, batch_first=True, bidirectional=True)
    padded = tools.pad_sequence([lib.randn(n, 3) for n in (2, 5, 3)], batch_first=True)
    packed = tools.pack_padded_sequence(padded, lib.tensor([2, 5, 3]), batch_first=True, enforce_sorted=False)
    y, (h, c) = layer(packed)
    y, lengths = tools.pad_packed_sequence(y, batch_first=True)
    (y.pow(2).sum() + h.sum() + c.sum()).backward()
    return [*results, y.sum().item(), layer.weight_ih_l0.grad.sum().item(), *map(float, lengths.tolist())]


def translation(lib: Any) -> list[float]:
    """An encoder and a decoder with masks of padding and of the future."""
    nn = lib.nn
    places = lib.zeros(12, 16)
    angle = lib.arange(0, 12).unsqueeze(1) * lib.exp(lib.arange(0, 16, 2) * (-math.log(10000.0) / 16))
    places[:, 0::2], places[:, 1::2] = lib.sin(angle), lib.cos(angle)
    first, second, head = nn.Embedding(20, 16), nn.Embedding(20, 16), nn.Linear(16, 20)
    model = nn.Transformer(16, 2, 1, 1, 32, dropout=0.0, batch_first=True)
    optimizer = lib.optim.Adam([p for m in (first, second, head, model) for p in m.parameters()], lr=1e-3, eps=1e-9)
    source, target = lib.randint(2, 20, (3, 7)), lib.randint(2, 20, (3, 6))
    source[0, 5:], target[1, 4:] = 1, 1
    results: list[float] = []
    for _ in range(3):
        given = target[:, :-1]
        y = model(
            first(source) * 4 + places[:7], second(given) * 4 + places[:5],
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(5), src_key_padding_mask=source == 1,
            tgt_key_padding_mask=lib.zeros(3, 5).masked_fill(given == 1, float("-inf")),
            memory_key_padding_mask=source.eq(1),
        )  # fmt: skip
        loss = nn.CrossEntropyLoss(ignore_index=1)(head(y).reshape(-1, 20), target[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        results.append(loss.item())
    return results


def noise(lib: Any) -> list[float]:
    """A small U of convolutions that learns to take noise away, and then draws."""
    nn, F = lib.nn, lib.nn.functional

    class Step(nn.Module):
        def __init__(self, before: int, after: int) -> None:
            super().__init__()
            self.first = nn.Sequential(nn.GroupNorm(4, before), nn.SiLU(), nn.Conv2d(before, after, 3, padding=1))
            self.results = nn.Linear(8, 2 * after)
            self.norm, self.last = nn.GroupNorm(4, after), nn.Conv2d(after, after, 3, padding=1)
            self.way = nn.Identity() if before == after else nn.Conv2d(before, after, 1)
            for p in self.last.parameters():
                p.detach().zero_()

        def forward(self, x, when):
            h, about = self.first(x), self.results(F.silu(when)).type(x.dtype)
            while about.ndim < h.ndim:
                about = about[..., None]
            scale, shift = lib.chunk(about, 2, dim=1)
            return self.way(x) + self.last(F.silu(self.norm(h) * (1 + scale) + shift))

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.begin, self.down, self.end = (
                nn.Conv2d(1, 8, 3, padding=1),
                nn.Conv2d(8, 8, 3, 2, 1),
                nn.Conv2d(8, 1, 1),
            )
            self.steps = nn.ModuleList([Step(8, 8), Step(8, 16), Step(24, 8)])
            self.look = nn.Conv1d(16, 48, 1)

        def forward(self, x, t):
            turn = t[:, None].float() * lib.exp(-math.log(10000) * lib.arange(4, dtype=lib.float32) / 4)[None]
            when = lib.cat([turn.cos(), turn.sin()], dim=-1)
            h = self.steps[0](self.begin(x), when)
            low = self.steps[1](self.down(h), when)
            b, c, *space = low.shape
            q, k, v = self.look(low.reshape(b, c, -1)).split(c, dim=1)
            weights = lib.softmax(lib.einsum("bct,bcs->bts", q, k) / math.sqrt(c), dim=-1)
            low = low + lib.einsum("bts,bcs->bct", weights, v).reshape(b, c, *space)
            up = F.interpolate(low, scale_factor=2, mode="nearest")
            return self.end(self.steps[2](lib.cat([up, h], dim=1), when))

    kept = lib.cumprod(1.0 - lib.linspace(1e-4, 0.02, 50, dtype=lib.float64), dim=0).float()
    before = F.pad(kept[:-1], (1, 0), value=1.0)

    def at(values, t):
        return values.gather(-1, t).reshape(t.shape[0], *((1,) * 3))

    model, clean = Model(), lib.randn(4, 1, 8, 8).clamp(-1, 1)
    optimizer, results = lib.optim.AdamW(model.parameters(), lr=1e-3), []
    for _ in range(3):
        t, added = lib.randint(0, 50, (4,)).long(), lib.randn_like(clean)
        noisy = at(kept.sqrt(), t) * clean + at((1 - kept).sqrt(), t) * added
        found = model(noisy, t)
        loss = F.mse_loss(found, added, reduction="none").mean(dim=[1, 2, 3]).mean() + F.smooth_l1_loss(found, added)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        results.append(loss.item())
    with lib.inference_mode():
        x = lib.randn(2, 1, 8, 8)
        for i in reversed(range(3)):
            t = lib.full((2,), i, dtype=lib.long)
            wrong, a = model(x, t), at(kept, t)
            guess = ((x - (1 - a).sqrt() * wrong) / a.sqrt()).clamp_(-1.0, 1.0)
            x = at(before, t).sqrt() * guess + (1 - at(before, t)).sqrt() * wrong
    return [*results, x.abs().mean().item()]


def policies(lib: Any) -> list[float]:
    """Actions drawn and weighed by what they brought: discrete, continuous and by value."""
    nn, F, dists = lib.nn, lib.nn.functional, lib.distributions
    rng, results = np.random.default_rng(0), []
    body, choice, worth = nn.Linear(4, 16), nn.Linear(16, 2), nn.Linear(16, 1)
    optimizer = lib.optim.Adam([p for m in (body, choice, worth) for p in m.parameters()], lr=3e-2)
    for _ in range(2):
        chances, values, rewards = [], [], []
        for t in range(6):
            seen = F.relu(body(lib.from_numpy(rng.standard_normal(4)).float()))
            distribution = dists.Categorical(F.softmax(choice(seen), dim=-1))
            action = distribution.sample()
            chances.append(distribution.log_prob(action) + 0.01 * distribution.entropy())
            values.append(worth(seen))
            rewards.append(float(action.item()) + t % 3)
        total, returns = 0.0, []
        for r in reversed(rewards):
            total = r + 0.99 * total
            returns.insert(0, total)
        goal = lib.tensor(returns)
        goal = (goal - goal.mean()) / (goal.std() + np.finfo(np.float32).eps.item())
        loss = lib.stack([-c * (g - v.item()) for c, g, v in zip(chances, goal, values, strict=True)]).sum()
        loss = loss + lib.stack([F.smooth_l1_loss(v, g.view(1)) for v, g in zip(values, goal, strict=True)]).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        results.append(loss.item())
    actor, width = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 2)), nn.Parameter(lib.zeros(1, 2))
    for layer in actor:
        if isinstance(layer, nn.Linear):
            nn.init.orthogonal_(layer.weight, math.sqrt(2))
            nn.init.constant_(layer.bias, 0.0)
    optimizer = lib.optim.RMSprop([*actor.parameters(), width], lr=1e-3, eps=1e-5)
    seen, gain = lib.randn(16, 3), lib.randn(16)
    with lib.no_grad():
        distribution = dists.Normal(actor(seen), width.expand(16, 2).exp())
        action = distribution.sample()
        old = distribution.log_prob(action).sum(1)
    for _ in range(3):
        distribution = dists.Normal(actor(seen), width.expand(16, 2).exp())
        ratio = (distribution.log_prob(action).sum(1) - old).exp()
        held = lib.clamp(ratio, 1 - 0.2, 1 + 0.2)
        loss = lib.max(-gain * ratio, -gain * held).mean() - 0.01 * distribution.entropy().sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        results.append(loss.item())
    mine, theirs = nn.Linear(4, 2), nn.Linear(4, 2)
    theirs.load_state_dict(mine.state_dict())
    now, then, chosen, reward = lib.randn(8, 4), lib.randn(8, 4), lib.randint(0, 2, (8, 1)), lib.randn(8)
    goes_on = lib.tensor([i % 3 != 0 for i in range(8)], dtype=lib.bool)
    best = lib.zeros(8)
    best[goes_on] = theirs(then[goes_on]).max(1)[0].detach()
    loss = nn.HuberLoss()(mine(now).gather(1, chosen), (reward + 0.9 * best).unsqueeze(1))
    loss.backward()
    for p, q in zip(mine.parameters(), theirs.parameters(), strict=True):
        p.grad.data.clamp_(-1, 1)
        q.data.copy_(0.995 * q.data + 0.005 * p.grad.data)
    return [*results, loss.item(), theirs.weight.sum().item()]


def waves(lib: Any) -> list[float]:
    """Spectra of signals, an operator in the space of frequencies, and positions as turns of complex numbers."""
    nn = lib.nn
    weight = nn.Parameter(lib.view_as_real(lib.polar(lib.rand(4), lib.rand(4))))
    mix = nn.Linear(8, 8)
    optimizer = lib.optim.Adam([weight, *mix.parameters()], lr=1e-2)
    x, window, results = lib.randn(2, 64), lib.hann_window(16), []
    goal = lib.stft(x, 16, 4, window=window, return_complex=True).abs().log1p()
    turn = lib.polar(lib.ones(64, 4), lib.outer(lib.arange(64).float(), 1.0 / 10000 ** (lib.arange(4).float() / 4)))
    for _ in range(3):
        slow = lib.fft.rfft(x, dim=-1, norm="ortho")
        parts = lib.view_as_complex(weight) * slow[:, :4]
        y = lib.fft.irfft(lib.cat([parts, slow[:, 4:]], -1), n=64, dim=-1, norm="ortho")
        pairs = lib.view_as_complex(mix(y[..., None].expand(2, 64, 8)).reshape(2, 64, 4, 2))
        y = y + lib.view_as_real(pairs * turn).flatten(-2).mean(-1)
        found = lib.stft(y, 16, 4, window=window, return_complex=True)
        loss = (found.abs().log1p() - goal).pow(2).mean() + found.real.mean().abs()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        results.append(loss.item())
    return results


PROGRAMS = [images, patches, language, adversaries, codes, sequences, translation, noise, policies, waves]
