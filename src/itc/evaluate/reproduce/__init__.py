"""How each table and figure of the paper is reproduced, by name."""

from itc.evaluate.reproduce import atari, figures, tables
from itc.evaluate.reproduce.recipe import Recipe

RECIPES: dict[str, Recipe] = {**tables.RECIPES, **atari.RECIPES, **figures.RECIPES}
