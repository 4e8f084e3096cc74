"""A view that learned what faults look like: two small networks, trained across domains with faults injected, left-out domains and kinds.

    TISAT_DATA=... python experiments/learned_view.py pool --out learned               windows of seven domains, half of them with a fault
    TISAT_DATA=... python experiments/learned_view.py run --out learned --kept kept    train and score; what is there is not run again
    python experiments/learned_view.py table --out learned --kept kept                 alone, and as one more view of prism

A network reads one channel in its own normal units (step, deviation from the mean of 64 rows, activity over 20 rows, level) and
says at every row whether a fault is under way. It is trained once, on normal training rows of all domains but one (SMD, MSL,
SMAP, ASD, JumpStarter2, NAB, plants) with the seven kinds of :mod:`tisat.datasets.injected_faults` injected, and applied to the domain left
out; and on all domains with one kind of fault left out, which it must then find in plants. ``convolution``: five causal layers,
63 rows. ``attention``: two causal ProbSparse layers of :mod:`tisat.detectors.networks` over 128 rows. The view's score is the mean of the three
largest softplus(logit) over channels, measured from its level on the training rows of the entity. The scores of prism come
from ``kept.py``. SPD at delta_max 100; plants at 1/day, threshold from training alone.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from kept import SETS, entities
from torch import Tensor, nn

from tisat.alarms.calibration import NormalEvidence
from tisat.alarms.rules import Scored, make_rule
from tisat.datasets.injected_faults import KINDS
from tisat.datasets.synthetic import DAY, make_plant
from tisat.detectors import make
from tisat.detectors.networks.attention import MultiHeadAttention
from tisat.detectors.prism.activity import LEAST_STEP
from tisat.metrics.windows import windows_of
from tisat_bench.rule_counts import EntityCounts, counts_of_scores

DOMAINS = (*SETS, "plants")
NAMES = list(KINDS)
BEFORE, LENGTH, GRACE = 64, 128, 30  # rows of context, of a window, after a fault that are not judged
POOL, BATCH, WIDTH = 2400, 64, 16
STEPS = {"convolution": 400, "attention": 250}
FAULTY = range(9700, 9712)  # plants with faults, used nowhere else
TRAINING = range(9800, 9810)  # plants the networks may learn from
LEARNED_FROM = 4000  # training rows the level of the view is taken from
SEEDS = {"convolution": (0, 1), "attention": (0, 1)}
TOO_LARGE = {("attention", "smd", 1), ("attention", "JumpStarter2", 1)}  # one seed is enough where a run takes minutes


class Units:
    """Of each channel, from training rows ``(T, C)``."""

    def __init__(self, train: np.ndarray) -> None:
        self.mean, self.std = train.mean(axis=0), train.std(axis=0) + 1e-9
        least = LEAST_STEP * (np.ptp(train, axis=0) + 1e-9)
        self.step = np.maximum(np.sqrt((np.diff(train, axis=0) ** 2).mean(axis=0)), least)
        aside, activity = self._aside(train), self._activity(train)
        self.aside = np.maximum(aside[BEFORE:].std(axis=0), least)
        self.usual, self.spread = activity[BEFORE:].mean(axis=0), np.maximum(activity[BEFORE:].std(axis=0), 0.1)

    @staticmethod
    def _mean_of_last(rows: np.ndarray, span: int) -> np.ndarray:
        total = np.cumsum(np.concatenate([np.zeros((1, rows.shape[1])), rows]), axis=0)
        at = np.arange(1, len(rows) + 1)
        low = np.maximum(at - span, 0)
        return np.asarray((total[at] - total[low]) / (at - low)[:, None])

    def _aside(self, rows: np.ndarray) -> np.ndarray:
        return rows - self.mean - self._mean_of_last(rows - self.mean, BEFORE)

    def _activity(self, rows: np.ndarray) -> np.ndarray:
        steps = np.diff(rows, axis=0, prepend=rows[:1]) / self.step
        return 0.5 * np.log(np.maximum(self._mean_of_last(steps**2, 20), 0.0) + 1e-4)

    def features(self, rows: np.ndarray) -> np.ndarray:
        """``(T, C, 4)``."""
        made = [
            np.diff(rows, axis=0, prepend=rows[:1]) / self.step,
            self._aside(rows) / self.aside,
            (self._activity(rows) - self.usual) / self.spread,
            (rows - self.mean) / self.std,
        ]
        return (np.clip(np.stack(made, axis=-1), -6.0, 6.0) / 2.0).astype(np.float32)


def training_rows(domain: str) -> list[np.ndarray]:
    if domain == "plants":
        return [np.asarray(make_plant(n_test=2, n_faults=0, random_state=seed).train.values) for seed in TRAINING]
    return [train for _, train, _, _ in entities(domain)]


def pool(out: Path) -> None:
    """Windows of each domain: features ``(n, LENGTH, 4)``, what is a fault, what is judged, and its kind (-1: none)."""
    out.mkdir(parents=True, exist_ok=True)
    for number, domain in enumerate(DOMAINS):
        if (out / f"pool-{domain}.npz").exists():
            continue
        rng = np.random.default_rng(number)
        parts = [rows for rows in training_rows(domain) if len(rows) > 3 * (BEFORE + LENGTH)]
        units = [Units(rows) for rows in parts]
        kept: list[tuple[np.ndarray, np.ndarray, np.ndarray, int]] = []
        while len(kept) < POOL:
            which = int(rng.integers(len(parts)))
            rows, c = parts[which], int(rng.integers(parts[which].shape[1]))
            start = int(rng.integers(0, len(rows) - BEFORE - LENGTH))
            window = rows[start : start + BEFORE + LENGTH, c].copy()
            fault, judged, kind = np.zeros(len(window), bool), np.ones(len(window), bool), -1
            if len(kept) % 2:
                kind = int(rng.integers(len(NAMES)))
                maker, (short, long) = KINDS[NAMES[kind]]
                first = int(rng.integers(BEFORE + 6, BEFORE + LENGTH - 20))
                last = min(first + int(rng.integers(short, long + 1)), len(window))
                size = units[which].step[c] * rng.uniform(4, 12) * (3 if NAMES[kind] == "spike" else 1)
                if rng.random() < 0.5:
                    size = max(size, units[which].std[c] * rng.uniform(0.5, 3))
                changed = maker(window[first:last], rows[:, c], start + first, size, rng)
                if np.abs(changed - window[first:last]).max() < units[which].step[c]:
                    continue  # nothing to see
                window[first:last] = changed
                fault[first:last] = True
                judged[last : last + GRACE] = False
            one = Units.__new__(Units)
            one.__dict__.update({name: value[c : c + 1] for name, value in vars(units[which]).items()})
            features = one.features(window[:, None])[BEFORE:, 0]
            kept.append((features, fault[BEFORE:], judged[BEFORE:], kind))
        stacked = [np.stack([one[i] for one in kept]) for i in range(4)]
        np.savez(out / f"pool-{domain}.npz", **dict(zip(("features", "fault", "judged", "kind"), stacked, strict=True)))
        print(f"{domain}: {len(kept)} windows of {len(parts)} entities", flush=True)


class Convolution(nn.Module):
    """Five causal layers, dilated 1, 2, 4, 8, 16."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Conv1d(4 if k == 0 else WIDTH, WIDTH, 3, dilation=2**k, padding=2 * 2**k) for k in range(5)
        )
        self.out = nn.Conv1d(WIDTH, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        """``(b, t, 4)`` to logits ``(b, t)``."""
        x = x.transpose(1, 2)
        for k, layer in enumerate(self.layers):
            y = torch.relu(layer(x)[..., : x.shape[-1]])
            x = y if k == 0 else x + y
        logits: Tensor = self.out(x)[:, 0]
        return logits


class Attention(nn.Module):
    """Two causal layers of sparse attention and feed-forward over LENGTH rows."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(4, WIDTH)
        self.position = nn.Parameter(0.02 * torch.randn(LENGTH, WIDTH))
        self.attend = nn.ModuleList(
            MultiHeadAttention(WIDTH, 2, kind="probsparse", factor=5, causal=True) for _ in range(2)
        )
        self.feed = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH)) for _ in range(2)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(4))
        self.out = nn.Linear(WIDTH, 1)

    def forward(self, x: Tensor) -> Tensor:
        """``(b, t, 4)`` to logits ``(b, t)``."""
        x = self.embed(x) + self.position[: x.shape[1]]
        for k in range(2):
            x = self.norms[2 * k](x + self.attend[k](x))
            x = self.norms[2 * k + 1](x + self.feed[k](x))
        logits: Tensor = self.out(x)[..., 0]
        return logits


NETWORKS = {"convolution": Convolution, "attention": Attention}


def trained(out: Path, which: str, seed: int, domains: list[str], kinds: list[int]) -> nn.Module:
    """Trained on the windows of some domains with some kinds of faults."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    parts = [dict(np.load(out / f"pool-{domain}.npz")) for domain in domains]
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    use = np.flatnonzero(np.isin(joined["kind"], [-1, *kinds]))
    features, fault, judged = (
        torch.as_tensor(joined[name][use].astype(np.float32)) for name in ("features", "fault", "judged")
    )
    network = NETWORKS[which]()
    optimiser = torch.optim.Adam(network.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, STEPS[which])
    for _ in range(STEPS[which]):
        some = torch.as_tensor(rng.integers(0, len(use), BATCH))
        losses = nn.functional.binary_cross_entropy_with_logits(network(features[some]), fault[some], reduction="none")
        loss = (losses * judged[some]).sum() / judged[some].sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return network.eval()


@torch.no_grad()
def said(network: nn.Module, features: np.ndarray) -> np.ndarray:
    """The view before it has units ``(T,)``: the mean of the three largest channels."""
    rows, channels, _ = features.shape
    out = np.full((rows, channels), np.nan, dtype=np.float32)
    if isinstance(network, Convolution):
        for c in range(0, channels, 8):
            some = torch.as_tensor(features[:, c : c + 8].transpose(1, 0, 2).copy())
            out[:, c : c + 8] = nn.functional.softplus(network(some)).numpy().T
    else:
        half = LENGTH // 2
        for start in range(0, max(rows - half, 1), half):
            chunk = features[start : start + LENGTH].transpose(1, 0, 2)
            value = nn.functional.softplus(network(torch.as_tensor(chunk.copy()))).numpy().T
            fresh = 0 if start == 0 else half
            out[start + fresh : start + LENGTH] = value[fresh:]
    return np.sort(out, axis=1)[:, -3:].mean(axis=1).astype(np.float64)


def view_of(network: nn.Module, train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scores of training rows and of the test, 0 at the level and -1 at the median; NaN in the warm-up of prism."""
    units = Units(train)
    normal, rows = said(network, units.features(train)), said(network, units.features(test))
    known = normal[100:]
    median, level = np.median(known), max(float(np.quantile(known, 0.99)), float(known.mean()))
    unit = level - median if level > median else 1.0
    scores = (rows - level) / unit
    scores[:100] = np.nan
    return (known - level) / unit, scores


def prism_of(out: Path, seed: int) -> dict[str, np.ndarray]:
    """Prism's views of a plant with faults, kept."""
    file = out / f"plant-{seed}.npz"
    if not file.exists():
        plant = make_plant(random_state=seed)
        detector = make("prism").fit(plant.train)
        np.savez(
            file,
            normal=detector.score_points(detector.normal_).views,
            breaks=detector.normal_breaks_,
            test=detector.score_points(detector.points(plant.test)).views,
        )
    return dict(np.load(file))


def run(out: Path, sets: list[str], networks: list[str], seeds: list[int]) -> None:
    everything = list(range(len(NAMES)))
    for which in networks:
        for seed in sorted({*SEEDS[which]} & {*seeds}):
            jobs = [(domain, everything) for domain in ("plants", *sets)]
            jobs += [("", [k for k in everything if k != left]) for left in everything] if seed == 0 else []
            for domain, kinds in jobs:
                if (which, domain, seed) in TOO_LARGE:
                    continue
                left = domain or f"no-{NAMES[next(k for k in everything if k not in kinds)].replace(' ', '-')}"
                folder = out / f"{which}-{seed}-{left}"
                if (folder / "done").exists():
                    continue
                folder.mkdir(exist_ok=True)
                start = time.process_time()
                network = trained(out, which, seed, [one for one in DOMAINS if one != domain], kinds)
                middle = time.process_time()
                if domain in SETS:
                    for name, train, test, _ in entities(domain):
                        _, scores = view_of(network, train[-LEARNED_FROM:], test)
                        np.savez(folder / f"{name}.npz", test=scores)
                else:
                    for plant_seed in FAULTY:
                        plant = make_plant(random_state=plant_seed)
                        normal, scores = view_of(network, np.asarray(plant.train.values), np.asarray(plant.test.values))
                        np.savez(folder / f"{plant_seed}.npz", normal=normal, test=scores)
                (folder / "done").touch()
                print(
                    f"{folder.name}: training {middle - start:.0f} s, scoring {time.process_time() - middle:.0f} s",
                    flush=True,
                )


def statistic(views: np.ndarray) -> np.ndarray:
    views = (
        np.hstack([views, np.full_like(views[:, :1], -1.0)]) if views.shape[1] == 1 else views
    )  # a silent one beside it
    rule = make_rule("excess").fit(
        Scored.of(np.array([[-1.0] * views.shape[1]] * 9), views=np.array([[-1.0] * views.shape[1]] * 9))
    )
    return np.asarray(rule.accumulate(rule.evidence(Scored.of(views, views=views)), threshold=1e300).statistic)


def counts(out: Path, kept: Path, domain: str, learned: Path | None, *, with_prism: bool) -> EntityCounts:
    statistics, windows = [], []
    for file in sorted((kept / "prism").glob(f"{domain}__*.npz")):
        with np.load(file) as arrays:
            columns, labels = [arrays["views"]] if with_prism else [], arrays["labels"].astype(bool)
        if learned is not None:
            columns.append(np.load(learned / f"{file.stem.split('__')[1]}.npz")["test"][:, None])
        statistics.append(statistic(np.hstack(columns)))
        windows.append(windows_of(labels, 100))
    return counts_of_scores(statistics, windows)


def found_in_plants(out: Path, learned: Path | None, *, with_prism: bool) -> tuple[dict[str, int], float]:
    """Faults found at 1/day by kind, and false alarms a day."""
    hits, false, rows = dict.fromkeys(NAMES, 0), 0, 0
    for seed in FAULTY:
        plant, mine = make_plant(random_state=seed), prism_of(out, seed)
        normal, test = ([mine["normal"]], [mine["test"]]) if with_prism else ([], [])
        if learned is not None:
            with np.load(learned / f"{seed}.npz") as arrays:
                normal, test = [*normal, arrays["normal"][:, None]], [*test, arrays["test"][:, None]]
        if len(normal) == 1 and not with_prism:  # a silent one beside it: measured from its own level
            normal, test = [*normal, -np.ones_like(normal[0])], [*test, -np.ones_like(test[0])]
        known, seen = np.hstack(normal), np.hstack(test)
        rule = make_rule("excess")
        evidence = NormalEvidence(rule, Scored.of(known, views=known), breaks=mine["breaks"].tolist())
        threshold = evidence.calibrate(1 / DAY).threshold
        active = rule.accumulate(rule.evidence(Scored.of(seen, views=seen)), threshold=threshold).active
        near = np.zeros(len(active), dtype=bool)
        for fault in plant.faults:
            hits[fault.kind] += bool(active[fault.start : fault.stop + 20].any())
            near[fault.start : fault.stop + 120] = True
        false += int((active & ~np.append(False, active[:-1]) & ~near).sum())
        rows += int((~near).sum())
    return hits, false / (rows / DAY)


def table(out: Path, kept: Path, sets: list[str], networks: list[str]) -> None:
    print("| | " + " | ".join(sets) + " |\n|---" + "|---" * len(sets) + "|")

    def line(label: str, of: list[EntityCounts | None]) -> None:
        cells = ["" if one is None else f"{one.pooled()[0]:.3f}/{np.nanmean(one.per_entity()):.3f}" for one in of]
        print(f"| {label} | " + " | ".join(cells) + " |", flush=True)

    line("prism", [counts(out, kept, domain, None, with_prism=True) for domain in sets])
    for which in networks:
        for seed in SEEDS[which]:
            folders = [out / f"{which}-{seed}-{domain}" for domain in sets]
            for label, with_prism in (("alone", False), ("and prism", True)):
                line(
                    f"{which}, seed {seed}, {label}",
                    [
                        counts(out, kept, d, f, with_prism=with_prism) if (f / "done").exists() else None
                        for d, f in zip(sets, folders, strict=True)
                    ],
                )
    print("\n| plants 9700 to 9711 | " + " | ".join(NAMES) + " | false a day |\n|---" + "|---" * (len(NAMES) + 1) + "|")

    def plants(label: str, folder: Path | None, *, with_prism: bool) -> None:
        hits, false = found_in_plants(out, folder, with_prism=with_prism)
        print(f"| {label} | " + " | ".join(map(str, hits.values())) + f" | {false:.2f} |", flush=True)

    plants("prism", None, with_prism=True)
    for which in networks:
        for seed in SEEDS[which]:
            folder = out / f"{which}-{seed}-plants"
            if (folder / "done").exists():
                plants(f"{which}, seed {seed}, no plant in training, alone", folder, with_prism=False)
                plants(f"{which}, seed {seed}, no plant in training, and prism", folder, with_prism=True)
        left = {name: out / f"{which}-0-no-{name.replace(' ', '-')}" for name in NAMES}
        if all((folder / "done").exists() for folder in left.values()):
            cells = [str(found_in_plants(out, folder, with_prism=False)[0][name]) for name, folder in left.items()]
            print(
                f"| {which}, plants in training, this kind of fault never, alone | " + " | ".join(cells) + " | |",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("pool", "run", "table"))
    parser.add_argument("--out", type=Path, default=Path("learned"))
    parser.add_argument("--kept", type=Path, default=Path("kept"))
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--seeds", default="0,1")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    sets, networks = given.sets.split(","), given.networks.split(",")
    if given.what == "pool":
        pool(given.out)
    elif given.what == "run":
        run(given.out, sets, networks, list(map(int, given.seeds.split(","))))
    else:
        table(given.out, given.kept, sets, networks)


if __name__ == "__main__":
    main()
