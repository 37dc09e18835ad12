"""What the learners logged: charts of the policy, the world model and imagined rollouts, and all other metrics."""

from collections.abc import Sequence
from typing import NamedTuple

from itc.evaluate.metrics import Line as Logged
from itc.evaluate.metrics import is_number
from itc.viewer.report.line_chart import Beside, is_zero, line_chart
from itc.viewer.report.markup import Markup, element
from itc.viewer.report.reading import Group
from itc.viewer.report.section import left_out
from itc.viewer.report.seed_lines import INTERACTIONS, lines_of, warm_ups


class Chart(NamedTuple):
    """One chart; its metrics have a name each if there are several, and all but the first are dashed."""

    title: str
    meaning: str
    metrics: dict[str, str]  # names on the chart by metric
    shares: bool = False


REAL, IMAGINED = "real rollouts", "imagined rollouts"
CHARTS = {
    "The policy": (
        Chart("entropy", "Of the policy's actions, in nats; 0 where it always takes the same.",
              {"play/entropy": REAL, "imagination/entropy": IMAGINED}),
        Chart("KL divergence", "How far an update moves the policy, in nats, estimated on its own batch.",
              {"play/kl": REAL, "imagination/kl": IMAGINED}),
        Chart("clip share", "Share of steps whose probability ratio PPO clips.", {"play/clipped": REAL}, shares=True),
        Chart("value loss", "Squared error of the value estimate, in units of the return normaliser.",
              {"play/value_loss": REAL, "imagination/value_loss": IMAGINED}),
        Chart("critic loss", "Cross-entropy of the critic's classes.", {"imagination/critic_loss": IMAGINED}),
        Chart("value", "Mean value estimate in imagined rollouts.", {"imagination/value": IMAGINED}),
    ),
    "The world model": (
        Chart("token loss", "Cross-entropy per token, in nats, on sequences of the replay buffer.",
              {"world_model/token_loss": ""}),
        Chart("token accuracy", "Share of tokens whose most likely code is right, on sequences of the replay buffer.",
              {"world_model/token_accuracy": ""}, shares=True),
        Chart("reward loss", "Cross-entropy of the reward's classes, in nats.", {"world_model/reward_loss": ""}),
        Chart("loss of episode ends", "Cross-entropy of whether the episode ends, in nats.",
              {"world_model/done_loss": ""}),
        Chart("codes in use", "Codes that the tokenizer has found.", {"codes": ""}),
    ),
    "Imagined rollouts": (
        Chart("reward by depth", "Reward per imagined step, early and late in the rollout. A true model pays as much "
              "late as early; one that pays more invites the policy to what is not there.",
              {"imagination/early_reward": "first half", "imagination/late_reward": "second half"}),
        Chart("loss of imagined tokens", "Nats per decoded token, by the model itself. More late than early: the "
              "model does not recognise what it has imagined.",
              {"imagination/early_token_loss": "first half", "imagination/late_token_loss": "second half"}),
        Chart("impossible frames", "Share of imagined frames that the game cannot show.",
              {"imagination/impossible": ""}, shares=True),
        Chart("copied tokens", "Share of imagined tokens that the decoder copied from the previous frame.",
              {"imagination/copied": ""}, shares=True),
        Chart("ends", "Share of imagined steps that end an episode.", {"imagination/ends": ""}, shares=True),
    ),
}  # fmt: skip


def learners(groups: Sequence[Group]) -> list[Markup]:
    """Charts of all that was logged, by what they are about; what only has zeros is named."""
    known = {metric for charts in CHARTS.values() for chart in charts for metric in chart.metrics}
    logged = [line for one in groups for run in one.runs for line in run.metrics]
    rest = tuple(Chart(_words(metric), "", {metric: ""}) for metric in _metrics(logged) if metric not in known)
    found = [_block(title, charts, groups) for title, charts in CHARTS.items()]
    more = _block("", rest, groups)
    folded = None if more is None else element("details", element("summary", "All other metrics"), more)
    return [part for part in (*found, folded) if part is not None]


def _block(title: str, charts: Sequence[Chart], groups: Sequence[Group]) -> Markup | None:
    drawn, zeros = [], []
    for chart in charts:
        lines = [line for one in groups for line in _lines(chart, one, len(groups) > 1)]
        if lines and is_zero(lines):
            zeros.append(chart.title)
        elif lines:
            made = line_chart(lines, chart.title, INTERACTIONS, Beside(warm_ups(groups)), shares=chart.shares,
                              meaning=chart.meaning)  # fmt: skip
            drawn.append(made)
    if not drawn and not zeros:
        return None
    return element(
        "div",
        element("h4", title) if title else None,
        chart_tools() if drawn else None,
        element("div", drawn, class_="charts small") if drawn else None,
        left_out(zeros),
        class_="curves",
    )


def _lines(chart: Chart, one: Group, several: bool) -> list:
    found = []
    for at, (metric, part) in enumerate(chart.metrics.items()):
        words = [one.name] * (several or not part) + [part] * bool(part)
        found += lines_of(one, metric, ", ".join(words), dashed=at > 0)
    return found


def chart_tools() -> Markup:
    """Shown by the script, which does the smoothing."""
    smooth = element("input", type="range", min=0, max=0.95, step=0.05, value=0, class_="smooth")
    return element(
        "div",
        element("label", "smoothing ", smooth, element("output", "0")),
        element("label", element("input", type="checkbox", class_="log"), " log scale"),
        class_="tools",
        hidden=True,
    )


def _metrics(logged: Sequence[Logged]) -> list[str]:
    """By phase, in the order in which they were logged first."""
    names = dict.fromkeys(name for line in logged for name, value in line.items() if "/" in name and is_number(value))
    return sorted(names, key=lambda name: name.split("/")[0])


def _words(metric: str) -> str:
    phase, _, name = metric.partition("/")
    return f"{phase}: {name}".replace("_", " ")
