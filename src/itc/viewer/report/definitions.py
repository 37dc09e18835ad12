"""What the words in headings mean, in a sentence each; docs/measures.md has the whole definitions."""

DEFINITIONS = {
    # one step ahead
    "exact": "Share of frames in which every token is that of the real next frame. Higher is better.",
    "plausible": "Share of frames that could have come next: right up to light, newly visible edges and where "
    "creatures can have moved. Higher is better.",
    "token error": "Share of tokens that differ from those of the real next frame. Lower is better.",
    "context 1": "The model is given the last frame only.",
    "context": "The model is given its whole context of frames.",
    "with creatures": "Steps before which a creature is in view.",
    "without creatures": "Steps before which no creature is in view.",
    # imagined rollouts
    "duplication": "New creatures without a pair in the previous frame, per creature and step. Closest to the "
    "simulator is best.",
    "disappearance": "Creatures without a pair in the next frame, per creature and step. Closest to the simulator is "
    "best.",
    "transmutation": "Creatures that disappear next to a new one of another class, per creature and step. Closest to "
    "the simulator is best.",
    "count error": "Absolute difference between the number of creatures of a class and that in the real frame of the "
    "same step. Lower is better.",
    "stay rate": "Share of creatures that stay in their cell while the view does not move. Closest to the simulator is "
    "best: in a frozen world it is 1.",
    "displacement distance": "Total variation distance, from 0 to 1, between the moves of creatures in imagination and "
    "in the simulator; the simulator's is that between two halves of its worlds.",
    "novelty: tiles beside the player": "Tiles next to the player whose kind has changed, per frame. Closest to the "
    "simulator is best.",
    "novelty: tiles elsewhere": "Tiles elsewhere in view whose kind has changed, per frame. Closest to the simulator "
    "is best.",
    "novelty: player turned": "How often the player's own tile changes, per frame. Closest to the simulator is best.",
    # returns
    "return": "Sum of the rewards of an episode, mean over episodes.",
    "return, %": "Return in percent of the largest return there is.",
    "return %": "Return in percent of the largest return there is.",
    "score, %": "Geometric mean of the achievements' success rates, each plus 1 %, minus 1 %: rare achievements count.",
    "score %": "Geometric mean of the achievements' success rates, each plus 1 %, minus 1 %: rare achievements count.",
    "IQM": "Interquartile mean: the mean of the middle half of the seeds.",
    "median": "The seed in the middle.",
    "optimality gap": "How far runs stay below 1, a human's score, on average; what is above 1 does not count.",
    "superhuman games": "Games with a mean score above 1, a human's.",
    "after": "Steps in the real environments until then, summed over all in parallel; imagined steps do not count.",
    "interactions": "Steps in the real environments, summed over all in parallel; imagined steps do not count.",
    "episodes": "Whole episodes that each run played for its evaluation, on held-out seeds.",
    "length": "Steps of an episode, mean over episodes.",
    "seeds": "Runs that differ only in their random seed.",
    "decoder": "How the tokens of an imagined frame are picked from the world model's prediction; c_d is the cost of "
    "distance, c_w that of generating a token.",
    "success rate": "Share of episodes in which the achievement was unlocked.",
    # phases of an iteration
    "play": "The policy plays in the real environments, and learns from that.",
    "tokenizer": "New patches are added to the codebook, or the autoencoder is trained.",
    "world model": "The world model learns from the replay buffer.",
    "imagination": "The policy plays in the world model, and learns from that.",
}  # fmt: skip


def definition(name: str) -> str | None:
    """That of the whole name, or those of its parts: "context 20 · with creatures"."""
    if name in DEFINITIONS:
        return DEFINITIONS[name]
    found = [DEFINITIONS.get(part) or DEFINITIONS.get(part.rstrip(" 0123456789")) for part in name.split(" · ")]
    return " ".join(one for one in found if one) or None
