"""The smallest Atari agent that runs every phase, for tests of the loop rather than of learning."""

from itc.policies.actor_critic_loss import ActorCriticConfig
from itc.policies.lstm import LSTMPolicyConfig
from itc.tokenizers.vqvae import VQVAEConfig
from itc.train.vq_agent.config import (
    CollectConfig,
    EvaluateConfig,
    ImagineConfig,
    TokenizerLearning,
    VQConfig,
    WorldModelLearning,
)
from itc.world_models.pop import POPConfig

VQ_TINY = VQConfig(
    env="atari/pong",
    decoder="paper-atari",  # needs no solver on the host, so that compiled programs can be cached for the next process
    total_iterations=4,
    collect=CollectConfig(iterations=3, steps=24, burn_in=4, replay_frames=100),
    tokenizer=TokenizerLearning(
        vqvae=VQVAEConfig(codes=16, code_size=8, channels=(4, 4, 4, 4), groups=2),
        updates=2,
        batch_size=4,
        start_iteration=0,
        rare_weight=0.1,
        continuous_updates=3,
    ),
    world_model=POPConfig(
        codes=16, layers=1, width=8, heads=1, hidden=8, context_frames=4, blocks_per_chunk=2, head_hidden=8, members=2
    ),
    world_model_learning=WorldModelLearning(updates=2, batch_size=4, start_iteration=1),
    policy=LSTMPolicyConfig(channels=(2, 2), hidden=8),
    actor_critic=ActorCriticConfig(return_batches=5),
    imagine=ImagineConfig(updates=2, num_envs=3, burn_in=4, start_iteration=2),
    evaluate=EvaluateConfig(every=0),
)
