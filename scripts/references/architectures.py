"""The tiny models: a table with a row per model.

All have rows of 64, four heads of 16 and a vocabulary of 320 unless the architecture forbids it, so
that kernels compiled for one model are reused for the next.
"""

from dataclasses import dataclass, field

from transformers import (
    Ernie4_5Config,
    Exaone4Config,
    Gemma2Config,
    Gemma3TextConfig,
    GemmaConfig,
    Glm4Config,
    GPT2Config,
    GraniteConfig,
    HunYuanDenseV1Config,
    LlamaConfig,
    MistralConfig,
    MixtralConfig,
    Olmo2Config,
    OlmoeConfig,
    Phi3Config,
    Qwen2Config,
    Qwen3Config,
    Qwen3MoeConfig,
    SeedOssConfig,
    SmolLM3Config,
    Starcoder2Config,
)

from packed import Packing
from tiny_tokenizer import VOCAB_SIZE

# Pre-tokenizer, special tokens, BOS, EOS, whether BOS is added.
LLAMA3 = ("llama-bpe", ["<|begin_of_text|>", "<|eot_id|>"], "<|begin_of_text|>", "<|eot_id|>", True)
QWEN2 = ("qwen2", ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], None, "<|im_end|>", False)
GPT2 = ("gpt-2", ["<|endoftext|>"], "<|endoftext|>", "<|endoftext|>", False)
TEKKEN = ("tekken", ["<unk>", "<s>", "</s>"], "<s>", "</s>", True)
STARCODER = ("starcoder", ["<|endoftext|>"], "<|endoftext|>", "<|endoftext|>", False)
REFACT = ("refact", ["<|end_of_text|>"], "<|end_of_text|>", "<|end_of_text|>", False)
DBRX = ("dbrx", ["<|endoftext|>"], "<|endoftext|>", "<|endoftext|>", False)
GLM4 = ("glm4", ["<|endoftext|>", "<|user|>"], None, "<|user|>", False)
HUNYUAN = ("hunyuan-dense", ["<|hy_end|>"], None, "<|hy_end|>", False)
EXAONE4 = ("exaone4", ["[BOS]", "[|endofturn|]"], "[BOS]", "[|endofturn|]", False)
SEED = ("seed-coder", ["<seed:bos>", "<seed:eos>"], "<seed:bos>", "<seed:eos>", False)
OLMO = ("olmo", ["<|endoftext|>"], None, "<|endoftext|>", False)
GEMMA = ("spm", ["<pad>", "<eos>", "<bos>"], "<bos>", "<eos>", True)
PHI3 = ("spm", ["<s>", "<|end|>"], "<s>", "<|end|>", True)

SIZES = {
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}
LONGROPE = {
    "type": "longrope",
    "short_factor": [1.0, 1.05, 1.1, 1.2, 1.3, 1.5, 1.8, 2.0],
    "long_factor": [1.0, 1.2, 1.6, 2.2, 3.0, 5.0, 7.0, 8.0],
}


@dataclass
class TinyModel:
    """A model and the properties of its GGUF file."""

    name: str
    # `general.architecture`
    architecture: str
    config: object
    tokenizer: tuple
    file_type: str = "F16"
    prompt_tokens: int = 80
    # Config changes. Each must change the logits, or the model would not test that part of the config.
    without: list = field(default_factory=list)


@dataclass
class TinyFolder:
    """A model in the form of a Hugging Face checkpoint."""

    name: str
    config: object
    # Regex of the pre-tokenizer, special tokens, BOS, EOS.
    tokenizer: tuple
    dtype: str
    # Bytes of a shard. `None` makes one file without an index.
    shard_bytes: int | None = None
    prompt_tokens: int = 80
    without: list = field(default_factory=list)


@dataclass
class TinyPacked:
    """A model as a checkpoint whose matrices have four bits, without a tokenizer."""

    name: str
    config: object
    packing: Packing
    prompt_tokens: int = 80
    without: list = field(default_factory=list)


def llama(**changes):
    return LlamaConfig(**SIZES, head_dim=16, rms_norm_eps=1e-5, **changes)


def phi3(**changes):
    sizes = {**SIZES, "pad_token_id": 0}
    return Phi3Config(**{**sizes, "rms_norm_eps": 1e-5, "partial_rotary_factor": 1.0, **changes})


MODELS = [
    TinyModel("llama", "llama", llama(), LLAMA3, without=[{"rope_theta": 1e6}]),
    TinyModel("qwen2", "qwen2", Qwen2Config(**SIZES, tie_word_embeddings=True, rope_theta=1e6),
              QWEN2, without=[{"rope_theta": 1e4}]),
    TinyModel("qwen3", "qwen3",
              Qwen3Config(**SIZES, head_dim=32, tie_word_embeddings=True, rope_theta=1e6), QWEN2),
    TinyModel("qwen3-Q4_0", "qwen3",
              Qwen3Config(**SIZES, head_dim=32, tie_word_embeddings=True, rope_theta=1e6), QWEN2,
              file_type="Q4_0"),
    # llama.cpp hard-codes Gemma 3's pattern: every sixth layer is global, so there are six layers.
    # Files do not state query_pre_attn_scalar, and llama.cpp uses the head length except in the 27B
    # model, so the scalar has to be the head length here.
    TinyModel("gemma3", "gemma3",
              Gemma3TextConfig(**{**SIZES, "num_hidden_layers": 6, "intermediate_size": 96},
                               head_dim=16, query_pre_attn_scalar=16, sliding_window=24),
              GEMMA, without=[{"sliding_window": 128}, {"rope_theta": 1e4},
                              {"rope_local_base_freq": 1e6}]),
    # As in the larger models, rotary embedding is scaled in global layers only.
    TinyModel("gemma3-linear-Q8_0", "gemma3",
              Gemma3TextConfig(**{**SIZES, "num_hidden_layers": 6, "intermediate_size": 96},
                               head_dim=16, query_pre_attn_scalar=16, sliding_window=24,
                               rope_scaling={"rope_type": "linear", "factor": 8.0}),
              GEMMA, file_type="Q8_0", without=[{"rope_scaling": None}]),
    # transformers applies the window, llama.cpp does not.
    TinyModel("phi3", "phi3", phi3(sliding_window=24), PHI3, without=[{"sliding_window": None}]),
    # transformers chooses the factors by the length of the sequence, llama.cpp by the requested
    # context. Both agree here for contexts of 256 to 512 tokens.
    TinyModel("phi3-longrope-short", "phi3",
              phi3(max_position_embeddings=2048, original_max_position_embeddings=512,
                   rope_scaling=LONGROPE),
              PHI3, file_type="Q8_0", without=[{"rope_scaling": None}]),
    TinyModel("phi3-longrope-long", "phi3",
              phi3(max_position_embeddings=512, original_max_position_embeddings=64,
                   rope_scaling=LONGROPE),
              PHI3, file_type="Q8_0",
              without=[{"rope_scaling": None}, {"original_max_position_embeddings": 128}]),
    TinyModel("llama-linear-Q8_0", "llama",
              llama(rope_scaling={"rope_type": "linear", "factor": 4.0}), LLAMA3,
              file_type="Q8_0", without=[{"rope_scaling": None}]),
    # llama.cpp also multiplies cos and sin by 1 + 0.1 ln(factor), unless the file states a factor.
    TinyModel("llama-yarn-Q8_0", "llama",
              llama(rope_scaling={"rope_type": "yarn", "factor": 4.0,
                                  "original_max_position_embeddings": 32}), LLAMA3,
              file_type="Q8_0",
              without=[{"rope_scaling": None},
                       {"rope_scaling": {"rope_type": "linear", "factor": 4.0}}]),
    TinyModel("llama-llama3-Q8_0", "llama",
              llama(rope_scaling={"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                                  "high_freq_factor": 4.0,
                                  "original_max_position_embeddings": 32}), LLAMA3,
              file_type="Q8_0",
              without=[{"rope_scaling": None},
                       {"rope_scaling": {"rope_type": "linear", "factor": 8.0}}]),
    # GGUF files of this architecture do not state a window, so there is none. Heads are wider than
    # dim / heads, as in Mistral Nemo.
    TinyModel("mistral-Q4_0", "llama",
              MistralConfig(**SIZES, head_dim=32, rms_norm_eps=1e-5, rope_theta=1e6,
                            sliding_window=None),
              TEKKEN, file_type="Q4_0"),
    TinyModel("mixtral-Q4_0", "llama",
              MixtralConfig(**{**SIZES, "intermediate_size": 32}, head_dim=16, rms_norm_eps=1e-5,
                            rope_theta=1e6, num_local_experts=4, num_experts_per_tok=2,
                            sliding_window=None, tie_word_embeddings=True),
              LLAMA3, file_type="Q4_0"),
    TinyModel("gemma-Q8_0", "gemma",
              GemmaConfig(**{**SIZES, "num_key_value_heads": 1}, head_dim=32,
                          hidden_activation="gelu_pytorch_tanh"), GEMMA, file_type="Q8_0"),
    # Even layers are local. The caps are low enough to change the logits.
    TinyModel("gemma2", "gemma2",
              Gemma2Config(**SIZES, head_dim=16, query_pre_attn_scalar=16, sliding_window=24,
                           attn_logit_softcapping=3.0, final_logit_softcapping=4.0), GEMMA,
              without=[{"sliding_window": 128}, {"attn_logit_softcapping": None},
                       {"final_logit_softcapping": None}]),
    TinyModel("olmo2", "olmo2", Olmo2Config(**SIZES, rms_norm_eps=1e-6, rope_theta=5e5), DBRX,
              without=[{"rope_theta": 1e4}]),
    # llama.cpp hard-codes that every fourth layer has no rope.
    TinyModel("smollm3-Q8_0", "smollm3",
              SmolLM3Config(**{**SIZES, "num_hidden_layers": 4}, rope_theta=2e6,
                            no_rope_layer_interval=4, tie_word_embeddings=True), LLAMA3,
              file_type="Q8_0", without=[{"no_rope_layers": [1, 1, 1, 1]}]),
    TinyModel("gpt2", "gpt2",
              GPT2Config(vocab_size=VOCAB_SIZE, n_positions=128, n_embd=64, n_layer=2, n_head=4,
                         bos_token_id=None, eos_token_id=None), GPT2),
    TinyModel("starcoder2", "starcoder2",
              Starcoder2Config(**SIZES, rope_theta=1e5, tie_word_embeddings=True,
                               sliding_window=None), STARCODER),
    TinyModel("granite", "granite",
              GraniteConfig(**SIZES, embedding_multiplier=6.0, attention_multiplier=0.15,
                            residual_multiplier=0.6, logits_scaling=0.5, rms_norm_eps=1e-5,
                            tie_word_embeddings=True), REFACT,
              without=[{"embedding_multiplier": 1.0}, {"attention_multiplier": 0.25},
                       {"residual_multiplier": 1.0}, {"logits_scaling": 1.0}]),
    # The weights of the chosen experts sum to 1 here, but not in OLMoE.
    TinyModel("qwen3moe-Q8_0", "qwen3moe",
              Qwen3MoeConfig(**SIZES, head_dim=32, moe_intermediate_size=32, num_experts=8,
                             num_experts_per_tok=2, norm_topk_prob=True, rope_theta=1e6,
                             tie_word_embeddings=True), QWEN2, file_type="Q8_0",
              without=[{"norm_topk_prob": False}]),
    TinyModel("olmoe-Q8_0", "olmoe",
              OlmoeConfig(**{**SIZES, "intermediate_size": 32}, num_experts=8,
                          num_experts_per_tok=2, norm_topk_prob=False, rms_norm_eps=1e-5), OLMO, file_type="Q8_0",
              without=[{"norm_topk_prob": True}]),
    # Adjacent pairs rotate, in checkpoints too.
    TinyModel("ernie4_5-Q8_0", "ernie4_5",
              Ernie4_5Config(**SIZES, head_dim=16, use_bias=False, rope_theta=5e5,
                             tie_word_embeddings=True), GEMMA, file_type="Q8_0",
              without=[{"rope_theta": 1e3}]),
    TinyModel("glm4-Q8_0", "glm4",
              Glm4Config(**SIZES, head_dim=32, partial_rotary_factor=0.5, attention_bias=True,
                         rms_norm_eps=1e-5), GLM4, file_type="Q8_0",
              without=[{"partial_rotary_factor": 1.0}]),
    # The last of four layers is global and does not rotate.
    TinyModel("exaone4-Q8_0", "exaone4",
              Exaone4Config(**{**SIZES, "num_hidden_layers": 4}, head_dim=16, rope_theta=1e6,
                            sliding_window=24, sliding_window_pattern=4,
                            tie_word_embeddings=True), EXAONE4, file_type="Q8_0",
              without=[{"sliding_window": 128},
                       {"layer_types": ["sliding_attention"] * 4}]),
    TinyModel("hunyuan-dense-Q8_0", "hunyuan-dense",
              HunYuanDenseV1Config(**SIZES, head_dim=16, rms_norm_eps=1e-5, rope_theta=1e4,
                                   rope_scaling={"rope_type": "dynamic", "type": "dynamic",
                                                 "alpha": 50.0, "factor": 1.0},
                                   tie_word_embeddings=True), HUNYUAN, file_type="Q8_0",
              without=[{"rope_scaling": None}]),
    TinyModel("seed_oss-Q8_0", "seed_oss",
              SeedOssConfig(**SIZES, head_dim=32, attention_bias=True, attention_out_bias=False,
                            rms_norm_eps=1e-6, rope_theta=1e7), SEED, file_type="Q8_0",
              without=[{"rope_theta": 1e4}]),
]  # fmt: skip

CASED_WORDS = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

FOLDERS = [
    # The config states the window, and transformers applies it.
    TinyFolder("mistral-hf",
               MistralConfig(**{**SIZES, "bos_token_id": 282, "eos_token_id": 283}, head_dim=16,
                             rms_norm_eps=1e-5, rope_theta=1e6, sliding_window=24),
               (CASED_WORDS, ["<unk>", "<s>", "</s>"], "<s>", "</s>"), "float16",
               without=[{"sliding_window": None}]),
    TinyFolder("qwen3-hf",
               Qwen3Config(**{**SIZES, "eos_token_id": 283}, head_dim=32, rope_theta=1e6,
                           tie_word_embeddings=True),
               (WORDS, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], None, "<|im_end|>"),
               "bfloat16", shard_bytes=150_000),
]  # fmt: skip

PACKED = [
    TinyPacked("gptq-sym-hf", llama(tie_word_embeddings=True),
               Packing("gptq", group_size=32, symmetric=True, idle_biases=True)),
    # A group of 128 covers a whole row of 64.
    TinyPacked("gptq-asym-hf",
               Qwen2Config(**SIZES, tie_word_embeddings=True, rope_theta=1e6),
               Packing("gptq_v2", group_size=128)),
    TinyPacked("gptq-act-order-hf", llama(tie_word_embeddings=True),
               Packing("gptq", group_size=32, symmetric=True, act_order=True)),
    TinyPacked("awq-hf",
               Qwen3MoeConfig(**SIZES, head_dim=32, moe_intermediate_size=32, num_experts=4,
                              num_experts_per_tok=2, norm_topk_prob=True, rope_theta=1e6,
                              tie_word_embeddings=True),
               Packing("awq", group_size=32)),
]  # fmt: skip
