import io
import tarfile

import numpy as np
import pytest


@pytest.fixture
def write_image():
    """Writes a small random image under any name that Pillow knows, and gives its pixels back."""
    image = pytest.importorskip("PIL.Image")
    random = np.random.default_rng(0)

    def write(place, mode="RGB", size=(5, 4)):
        place.parent.mkdir(parents=True, exist_ok=True)
        channels = {"L": (), "RGB": (3,), "RGBA": (4,)}[mode]
        pixels = random.integers(0, 256, (size[1], size[0], *channels), dtype=np.uint8)
        image.fromarray(pixels).save(place)
        return pixels

    return write


@pytest.fixture
def write_archive():
    """Writes a .tar.gz of the given members."""

    def write(place, members):
        with tarfile.open(place, "w:gz") as archive:
            for name, data in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
        return place

    return write
