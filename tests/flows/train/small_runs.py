"""Small runs on images of a few pixels, which other processes can be told to make."""

import torch
from safetensors.torch import load_file

from longtail.flows.train.reading import recipe_from
from longtail.flows.train.train import train


def small(path, **values):
    return recipe_from(
        {
            "data": {"kind": "npz", "path": str(path), "validation_share": 0.2},
            "backbone": {"name": "mlp", "inputs": 192, "hidden": [16]},
            "optimizer": {"lr": 0.02},
            "epochs": 2,
            "batch_size": 32,
        }
        | values
    )


def of_a_run(path, folder, values):
    """The tensors that a run leaves."""
    train(small(path, **values), folder)
    return {
        f"{file.stem}.{key}": value
        for file in sorted(folder.glob("*.safetensors"))
        for key, value in load_file(file).items()
    }


def variants_of_runs(path, folder, recipes):
    """The logits of all variants of some runs, as a process of each run has them."""
    return {
        f"{name}.{variant.name}.{split}": torch.as_tensor(scores.logits).contiguous()
        for name, values in recipes.items()
        for variant in train(small(path, **values), folder / name).variants
        for split, scores in variant.scores.items()
    }
