"""Trains a small transformer to predict the next code of a health record; a run can be resumed at any step.

    python python/examples/train.py /tmp/cohort --minutes 60 --log losses.csv --checkpoint run.pt
    python python/examples/train.py /tmp/cohort --minutes 60 --log rest.csv --checkpoint run.pt --resume

The folder is a MEDS data set or a tensorized cohort; if it does not exist, 1,250 synthetic patients are
written to it. The log has one line per step: epoch, batch, loss and resident memory. A checkpoint holds the
model, the optimizer, the generator of random numbers and the position of the loader: everything that the
losses after it depend on.
"""

import argparse
import os
import resource
import time
from pathlib import Path

import torch
from torch import nn

import serrate


class NextCode(nn.Module):
    """Predicts the code that follows each position from the codes, values and times of a record."""

    def __init__(self, codes: int, width: int = 64, layers: int = 2):
        super().__init__()
        self.code = nn.Embedding(codes, width, padding_idx=0)
        self.rest = nn.Linear(3, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.scores = nn.Linear(width, codes)

    def forward(self, batch):
        known = batch["numeric_value_mask"].float()
        value = batch["numeric_value"].nan_to_num().clamp(-1e4, 1e4)
        days = batch["time_delta_days"].nan_to_num()
        rest = torch.stack([value.sign() * value.abs().log1p(), known, days.log1p()], dim=-1)
        length = batch["code"].shape[1]
        future = nn.Transformer.generate_square_subsequent_mask(length)
        return self.scores(self.encoder(self.code(batch["code"]) + self.rest(rest), mask=future, is_causal=True))


def loss_of(model, batch):
    scores = model(batch)[:, :-1]
    return nn.functional.cross_entropy(scores.flatten(0, 1), batch["code"][:, 1:].flatten(), ignore_index=0)


def resident() -> int:
    """Returns the resident memory in bytes, or its maximum if /proc is missing."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def save(path: Path, **state):
    """Replaces the checkpoint atomically, so that an interruption leaves the old one."""
    part = path.with_suffix(".part")
    torch.save(state, part)
    os.replace(part, path)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cohort", type=Path)
    parser.add_argument("--minutes", type=float, default=60, help="time after which the run ends")
    parser.add_argument("--steps", type=int, help="step at which the run ends")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--len", type=int, default=128)
    parser.add_argument("--log", type=Path, default=Path("losses.csv"))
    parser.add_argument("--checkpoint", type=Path, default=Path("run.pt"))
    parser.add_argument("--every", type=int, default=100, help="steps from one checkpoint to the next")
    parser.add_argument("--resume", action="store_true", help="continue from the checkpoint")
    return parser.parse_args()


def main():
    args = arguments()
    torch.set_num_threads(1)
    torch.manual_seed(7)
    if not args.cohort.exists():
        serrate.meds.generate(args.cohort, 1250, seed=7, shards=5)
    loader = serrate.MedsLoader(
        args.cohort, split="train", batch_size=args.batch, max_seq_len=args.len, shuffle=True, seed=7
    )
    codes = serrate.sql(f"SELECT max(ragged_max(code_id)) AS most FROM meds('{args.cohort}')").to_dict()["most"][0]
    model = NextCode(codes + 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step = 0
    if args.resume:
        state = torch.load(args.checkpoint, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])
        loader.load_state_dict(state["loader"])
        step = state["step"]

    end = time.monotonic() + 60 * args.minutes
    with open(args.log, "w") as log:
        print("step,epoch,batch,loss,resident_mb", file=log)
        while True:
            for batch in loader:
                at = loader.state_dict()
                loss = loss_of(model, batch)
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                step += 1
                print(f"{step},{at['epoch']},{at['batch']},{loss.item()!r},{resident() / 1e6:.1f}", file=log, flush=True)
                over = step == args.steps or time.monotonic() > end
                if over or step % args.every == 0:
                    save(
                        args.checkpoint,
                        model=model.state_dict(),
                        optimizer=optimizer.state_dict(),
                        random=torch.get_rng_state(),
                        loader=at,
                        step=step,
                    )
                if over:
                    return


if __name__ == "__main__":
    main()
