"""Atari 100K: `itc train atari/pong/itc-paper --seed 0`; 26 games and five seeds in the paper.

Published: mean return of the final weights after 100,000 interactions.
"""

from dataclasses import replace

from itc.envs.atari import GAMES
from itc.evaluate.published import value
from itc.policies.actor_critic_loss import ActorCriticConfig
from itc.policies.lstm import LSTMPolicyConfig
from itc.presets.preset import Preset
from itc.tokenizers.vqvae import VQVAEConfig
from itc.train.vq_agent.config import (
    CollectConfig,
    Compat,
    EvaluateConfig,
    ImagineConfig,
    TokenizerLearning,
    VQConfig,
    WorldModelLearning,
)
from itc.world_models.pop import POPConfig

GPU = "one GPU, 9.5 h at 20 TFLOP/s"  # estimated by `itc bench atari`

ITC_PAPER = VQConfig(decoder="paper-atari")
# The paper's position encodings with plain sampling: the control for any decoder, which the paper lacks.
SIMULUS_ROPE3D = replace(ITC_PAPER, decoder="sample")
SIMULUS = replace(SIMULUS_ROPE3D, world_model=POPConfig(rotary="1d", absolute=False))
# As released, with everything that the authors' code does differently.
ITC_RELEASED = replace(
    ITC_PAPER,
    decoder="released-atari",
    compat=Compat(
        done_one_step_late=True,
        look_ahead=True,
        perceptual_dropout=True,
        intrinsic_reward_after_collection=True,
        copy_after_done=True,
        first_frame_without_copying=True,
    ),
)

# Small networks. The world model is trained after the tokenizer, because there is no time for it to adapt to a
# tokenizer that keeps changing. Long enough to train both, too short to play well. Without cell embeddings: code
# vectors have small norms after minutes of training, and the embeddings would dominate them. A fifth of the tokenizer's
# loss is for unusual pixels, and it begins without codes: otherwise it never draws Breakout's ball.
QUICK = replace(
    ITC_PAPER,
    total_iterations=12,
    collect=CollectConfig(iterations=10, steps=400, replay_frames=5_000),
    tokenizer=TokenizerLearning(
        vqvae=VQVAEConfig(codes=128, code_size=64, channels=(16, 32, 64, 64)),
        updates=850,
        batch_size=8,
        start_iteration=3,
        stop_iteration=8,
        revive_after_updates=20,
        rare_weight=0.2,
        continuous_updates=1000,
        learning_rate=1e-3,
    ),
    world_model=POPConfig(
        codes=128,
        layers=2,
        width=64,
        heads=2,
        hidden=128,
        dropout=0.0,
        absolute=False,
        blocks_per_chunk=1,
        head_hidden=128,
    ),
    world_model_learning=WorldModelLearning(updates=250, batch_size=8, start_iteration=8, learning_rate=3e-3),
    policy=LSTMPolicyConfig(channels=(32, 16), hidden=128),
    actor_critic=ActorCriticConfig(return_batches=50),
    imagine=ImagineConfig(updates=20, num_envs=16, start_iteration=10),
    evaluate=EvaluateConfig(every=12, episodes=1),
)


def title_of(game: str) -> str:
    """A game's name as in the paper: up_n_down is UpNDown."""
    return "".join(word.capitalize() for word in game.split("_"))


def published(method: str, game: str) -> str:
    return f"{value('atari', method, title_of(game), 'return'):g}"


PRESETS = {
    f"atari/{game}/{variant}": Preset(replace(config, env=f"atari/{game}"), about, hardware, number)
    for game in GAMES
    for variant, config, about, hardware, number in (
        ("simulus", SIMULUS, "baseline: 1-D positions, plain sampling", GPU, published("Simulus", game)),
        (
            "simulus-rope3d",
            SIMULUS_ROPE3D,
            "3-D and absolute positions, plain sampling: the control for any decoder",
            GPU,
            "",
        ),
        ("itc-released", ITC_RELEASED, "the paper's agent as in the released code", GPU, published("ITC", game)),
        ("itc-paper", ITC_PAPER, "the paper's agent, its decoder solved exactly", GPU, published("ITC", game)),
        ("itc", replace(ITC_PAPER, decoder="conserving"), "our decoder", GPU, ""),
        ("quick", QUICK, "all phases with small networks; too short to play well", "two CPU cores, 9 minutes", ""),
    )
}
