"""A convolutional net that learns to tell the direction of stripes in noise: a program of one process, made elastic by `goodput_elastic`.

    goodput live submit --name stripes --elastic --gpus 1 --max 8 -- python3 elastic_cnn.py [EPOCHS] [FOLDER]

Each process writes the samples and the loss of its steps into FOLDER, where one is given.
"""

import os
import sys

import torch
from torch import nn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import goodput_elastic

CLASSES, SIDE = 8, 16


class Stripes(torch.utils.data.Dataset):
    """Images of stripes in one of eight directions, in noise; each follows from its number."""

    def __len__(self):
        return 960

    def __getitem__(self, index):
        random = torch.Generator().manual_seed(index)
        label = index % CLASSES
        angle, phase = torch.tensor(label * torch.pi / CLASSES), torch.rand(1, generator=random) * 6.28
        at = torch.arange(SIDE, dtype=torch.float32)
        waves = torch.sin(torch.cos(angle) * at[:, None] + torch.sin(angle) * at[None, :] + phase)
        return (waves + torch.randn(SIDE, SIDE, generator=random))[None], label


def main(epochs, folder=None):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
        nn.Flatten(), nn.Linear(128, CLASSES),
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    goodput_elastic.run(model, Stripes(), nn.functional.cross_entropy, optimizer, batch_size=48, epochs=epochs, seed=1, sample_log=folder)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20, *sys.argv[2:3])
