"""The paper's figures."""

from functools import partial
from pathlib import Path

from itc.evaluate.reproduce.commands import FULL, agents_here, at_paper_size, runs_at_paper_size
from itc.evaluate.reproduce.recipe import Recipe, Step
from itc.evaluate.reproduce.tables import CLASSIC, CLASSIC_SIZE, NOT_TIMED, RETURNED, RTX_3090, UNTUNED

FIGURES = Path("figures")


def _draw(figure: str, *runs: str) -> Step:
    return Step("the picture", ("reproduce", figure, "--runs", *runs, "--out", str(FIGURES)))


def _correspondence(out: Path, seeds: int = 0) -> tuple[Step, ...]:
    picture = out / "figure-correspondence.png"
    return (Step("the picture", ("demo", "--picture", str(picture)), picture),)


RECIPES: dict[str, Recipe] = {
    "figure-correspondence": Recipe(
        about="a frame and the next, with an arrow for every token that was copied",
        seeds=0,
        needs="no training; a minute on two CPU cores",
        full=_correspondence(FIGURES),
        here=_correspondence,
        instead_of_runs="figure-correspondence is not made of runs; --here draws it",
        notes=("In a world of random walkers, whose true predictions are known, instead of a game.",),
    ),
    "figure-mask": Recipe(
        about="which token attends to which in the world model",
        seeds=0,
        needs="no training; seconds",
        full=(Step("the picture", ("reproduce", "figure-mask", "--here", "--out", str(FIGURES))),),
        here=lambda out, seeds: (),
        instead_of_runs="figure-mask is not made of runs; --here draws it",
    ),
    "figure-returns": Recipe(
        about="Craftax-classic: return over interactions",
        seeds=10,
        needs=RTX_3090,
        full=(*at_paper_size(CLASSIC, RETURNED, 10), _draw("figure-returns", *runs_at_paper_size(CLASSIC, RETURNED))),
        here=partial(agents_here, CLASSIC, RETURNED),
        stands_in=CLASSIC_SIZE,
        also_reduced=(UNTUNED, NOT_TIMED),
        notes=("The paper's curves for MinAtar are drawn the same way, from the runs of `itc reproduce minatar`.",),
    ),
    "figure-filmstrip": Recipe(
        about="Craftax-classic: real frames, and what the model imagines under the same actions",
        seeds=1,
        needs=RTX_3090,
        full=(
            *at_paper_size(CLASSIC, ("itc-paper",), 1),
            _draw("figure-filmstrip", f"{FULL}/{CLASSIC}-itc-paper/seed=0"),
        ),
        here=partial(agents_here, CLASSIC, ("itc-paper",)),
        seeds_here=1,
        stands_in=CLASSIC_SIZE,
        also_reduced=(NOT_TIMED,),
        notes=("The paper shows two models; here one model is decoded in several ways.",),
    ),
}
