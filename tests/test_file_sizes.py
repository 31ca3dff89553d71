"""No file that is read whole is read before its size is known to be that of such a file."""

import pytest

import longtail as lt
from longtail.data.tables.names import read_class_names
from longtail.flows.prior_files import ClassesOf, read_prior
from longtail.flows.run_sources import _json
from longtail.flows.train.reading import read_recipe_file
from longtail.images import read_image_list

READERS = {
    "counts.json": lt.data.read_label_counts,
    "target.json": lambda path: read_prior(path, ClassesOf(path, 2, None)),
    "names.json": read_class_names,
    "costs.json": lambda path: lt.data.read_costs(path, 2),
    "sets.json": lt.posthoc.ConformalSets.load,
    "adjuster.json": lt.posthoc.load_adjusters,
    "recipe.yaml": read_recipe_file,
    "metrics.json": _json,
    "annotations.json": lambda path: read_image_list(path, path.parent),
}


@pytest.mark.parametrize("name", READERS)
def test_a_file_of_any_size_is_refused_by_it(tmp_path, name):
    with (tmp_path / name).open("wb") as file:
        file.truncate(2**40)  # of holes: it takes no room on the disk
    with pytest.raises(ValueError, match=rf"{name} has more than the .* bytes"):
        READERS[name](tmp_path / name)
