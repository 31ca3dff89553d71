"""The catalogue: the recipes of the five papers, and quick ones for a CPU."""

from longtail.recipes.training.catalogue import elm as elm
from longtail.recipes.training.catalogue import estimated_offset as estimated_offset
from longtail.recipes.training.catalogue import experts as experts
from longtail.recipes.training.catalogue import lade as lade
from longtail.recipes.training.catalogue import ldam as ldam
from longtail.recipes.training.catalogue import logit_adjustment as logit_adjustment
from longtail.recipes.training.catalogue import nearest_class_mean as nearest_class_mean
from longtail.recipes.training.catalogue import quick as quick
from longtail.recipes.training.catalogue.registry import RECIPES as RECIPES
from longtail.recipes.training.catalogue.registry import named_recipe as named_recipe
