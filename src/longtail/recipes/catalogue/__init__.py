"""The catalogue: the recipes of the five papers, and quick ones for a CPU."""

from longtail.recipes.catalogue import baselines as baselines
from longtail.recipes.catalogue import elm as elm
from longtail.recipes.catalogue import estimated_offset as estimated_offset
from longtail.recipes.catalogue import lade as lade
from longtail.recipes.catalogue import logit_adjustment as logit_adjustment
from longtail.recipes.catalogue import nearest_class_mean as nearest_class_mean
from longtail.recipes.catalogue import quick as quick
from longtail.recipes.catalogue.registry import RECIPES as RECIPES
from longtail.recipes.catalogue.registry import named_recipe as named_recipe
from longtail.recipes.catalogue.registry import read_recipe as read_recipe
from longtail.recipes.catalogue.registry import recipe_name as recipe_name
