# SPDX-License-Identifier: Apache-2.0
"""A small language model like Qwen2-0.5B, in the operators that ONNX Runtime's generator of such models writes.

Weights are 4-bit in blocks of 32 (MatMulNBits), attention is grouped with the rotary embedding inside
(GroupQueryAttention), and keys and values are inputs and outputs of one shape, so that a caller may give one buffer for
both. Needs numpy alone.
"""

import numpy as np

from onnx_file import GraphBuilder, model_of, save
from open_model import size, value

SEED = 33
LAYERS, WIDTH, HEADS, KV_HEADS, HIDDEN = 12, 896, 14, 2, 4864
HEAD = WIDTH // HEADS
VOCABULARY = 32000
POSITIONS = 4096  # of the rotary embedding's caches
BLOCK = 32
MICROSOFT = "com.microsoft"
ROW = ["batch", "sequence"]


def quantized(weights):
    """Weights [n, k] as MatMulNBits reads them: two values a byte [n, k / 32, 16], and scales [n * k / 32]. A value v
    stands for (v - 8) * scale."""
    blocks = weights.reshape(weights.shape[0], -1, BLOCK)
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(2)[..., None], 2)
    scales = (largest / -8).astype(np.float32)
    values = np.clip(np.rint(blocks / scales) + 8, 0, 15).astype(np.uint8)
    return values[..., 0::2] | values[..., 1::2] << 4, scales.reshape(-1)


class LanguageModel:
    """accuracy_level: of MatMulNBits. 4 lets ONNX Runtime compute with activations of 8 bits, 0 in float."""

    def __init__(self, accuracy_level, layers=LAYERS):
        self.builder = GraphBuilder("language_model")
        self.random = np.random.default_rng(SEED)
        self.accuracy_level = accuracy_level
        self.layers = layers

    def normal(self, *shape, scale=1.0):
        return (scale * self.random.standard_normal(shape)).astype(np.float32)

    def product(self, path, given, inputs, outputs, bias=False, output=None):
        """x W^T of 4-bit weights, and a bias if wanted. Returns the name of the result."""
        name = path.strip("/").replace("/", ".") + ".MatMul"
        values, scales = quantized(self.normal(outputs, inputs, scale=inputs ** -0.5))
        self.builder.constant(name + ".weight_Q4", values)
        self.builder.constant(name + ".weight_scales", scales)
        result = self.builder.node(
            "MatMulNBits", [given, name + ".weight_Q4", name + ".weight_scales"], output or path + "/MatMul/output_0",
            MICROSOFT, accuracy_level=self.accuracy_level, bits=4, block_size=BLOCK, K=inputs, N=outputs)
        if not bias:
            return result
        self.builder.constant(name + ".bias", self.normal(outputs, scale=0.2))
        return self.builder.node("Add", [result, name + ".bias"], path + "/Add/output_0")

    def gain(self, name):
        return self.builder.constant(name, 1 + self.normal(WIDTH, scale=0.1))

    def add_and_norm(self, path, residual, added, is_last=False):
        """The sum of both and its norm. Returns (norm, sum)."""
        name = path.strip("/").replace("/", ".") + ".weight"
        outputs = [path + "/output_0"] if is_last else [path + "/output_0", "", "", path + "/output_3"]
        self.builder.node("SkipSimplifiedLayerNormalization", [residual, added, self.gain(name)], outputs, MICROSOFT,
                          epsilon=1e-6)
        return outputs[0], outputs[-1]

    def lengths(self):
        """From the mask: the index of each row's last token, and the length of the longest row, as i32."""
        path = "/model/attn_mask_reformat"
        build = self.builder
        build.constant("one", np.array([1], np.int64))
        build.constant("first", np.array(1, np.int64))
        build.node("ReduceSum", ["attention_mask", "one"], path + "/ReduceSum/output_0", keepdims=0)
        build.node("Sub", [path + "/ReduceSum/output_0", "one"], path + "/Sub/output_0")
        build.node("Cast", [path + "/Sub/output_0"], path + "/seqlens_k", to=6)
        build.node("Shape", ["attention_mask"], path + "/Shape/output_0")
        build.node("Gather", [path + "/Shape/output_0", "first"], path + "/Gather/output_0", axis=0)
        build.node("Cast", [path + "/Gather/output_0"], path + "/total_seq_len", to=6)

    def rotary_caches(self):
        rates = 1e6 ** (-np.arange(0, HEAD, 2) / HEAD)
        angles = np.arange(POSITIONS)[:, None] * rates
        self.builder.constant("cos_cache", np.cos(angles).astype(np.float32))
        self.builder.constant("sin_cache", np.sin(angles).astype(np.float32))

    def attention(self, layer, given):
        path = f"/model/layers.{layer}/attn"
        query = self.product(path + "/q_proj", given, WIDTH, WIDTH, bias=True)
        key = self.product(path + "/k_proj", given, WIDTH, KV_HEADS * HEAD, bias=True)
        mixed = self.product(path + "/v_proj", given, WIDTH, KV_HEADS * HEAD, bias=True)
        result = path + "/GroupQueryAttention/output_0"
        lengths = "/model/attn_mask_reformat"
        self.builder.node(
            "GroupQueryAttention",
            [query, key, mixed, f"past_key_values.{layer}.key", f"past_key_values.{layer}.value",
             lengths + "/seqlens_k", lengths + "/total_seq_len", "cos_cache", "sin_cache"],
            [result, f"present.{layer}.key", f"present.{layer}.value"], MICROSOFT, num_heads=HEADS,
            kv_num_heads=KV_HEADS, scale=HEAD ** -0.5, local_window_size=-1, softcap=0.0, do_rotary=1,
            rotary_interleaved=0)
        return self.product(path + "/o_proj", result, WIDTH, WIDTH)

    def feed_forward(self, layer, given):
        path = f"/model/layers.{layer}/mlp"
        gate = self.product(path + "/gate_proj", given, WIDTH, HIDDEN)
        up = self.product(path + "/up_proj", given, WIDTH, HIDDEN)
        build = self.builder
        sigmoid = build.node("Sigmoid", [gate], path + "/act_fn/Sigmoid/output_0")
        active = build.node("Mul", [gate, sigmoid], path + "/act_fn/Mul/output_0")
        return self.product(path + "/down_proj", build.node("Mul", [active, up], path + "/Mul/output_0"), HIDDEN, WIDTH)

    def make(self):
        build = self.builder
        build.input("input_ids", np.int64, ROW)
        build.input("attention_mask", np.int64, ["batch", "total_sequence"])
        build.output("logits", np.float32, [*ROW, VOCABULARY])
        for layer in range(self.layers):
            for part in ("key", "value"):
                build.input(f"past_key_values.{layer}.{part}", np.float32, ["batch", KV_HEADS, "past_sequence", HEAD])
                build.output(f"present.{layer}.{part}", np.float32, ["batch", KV_HEADS, "present_sequence", HEAD])
        self.lengths()
        self.rotary_caches()
        build.constant("model.embed_tokens.weight", self.normal(VOCABULARY, WIDTH))
        residual = build.node("Gather", ["model.embed_tokens.weight", "input_ids"], "/model/embed_tokens/Gather/output_0")
        given = build.node(
            "SimplifiedLayerNormalization", [residual, self.gain("model.layers.0.input_layernorm.weight")],
            "/model/layers.0/input_layernorm/output_0", axis=-1, epsilon=1e-6, stash_type=1)
        for layer in range(self.layers):
            path = f"/model/layers.{layer}"
            given, residual = self.add_and_norm(path + "/post_attention_layernorm", residual,
                                                self.attention(layer, given))
            is_last = layer + 1 == self.layers
            following = "/model/norm" if is_last else f"/model/layers.{layer + 1}/input_layernorm"
            given, residual = self.add_and_norm(following, residual, self.feed_forward(layer, given), is_last)
        self.product("/lm_head", given, WIDTH, VOCABULARY, output="logits")
        return model_of(build.graph, domains=[MICROSOFT])


def write_language_model(path, accuracy_level):
    """bytes_per_token of the description: the weights of all products, which a call with one token reads once."""
    model = LanguageModel(accuracy_level).make()
    save(model, path)
    # ONNX Runtime refuses more than one row where there are several new tokens and a past.
    sizes = {"batch": size(1, 1), "sequence": size(1, 64), "past_sequence": size(0, 256)}
    length = "past_sequence + sequence"
    inputs = {"input_ids": value("int64", ROW, "integers", low=0, high=VOCABULARY),
              "attention_mask": value("int64", ["batch", length], "ones")}
    for layer in range(LAYERS):
        for part in ("key", "value"):
            inputs[f"past_key_values.{layer}.{part}"] = value(
                "float32", ["batch", KV_HEADS, "past_sequence", HEAD], "normal")
    weights = [constant for constant in model.graph.initializer if ".MatMul." in constant.name]
    return {"sizes": sizes, "inputs": inputs, "bytes_per_token": sum(len(weight.raw_data) for weight in weights)}


def language_model(path):
    """A language model like Qwen2-0.5B with 12 layers, weights of 4 bits, products in float."""
    return write_language_model(path, 0)


def language_model_int8(path):
    """The same weights, with MatMulNBits at accuracy level 4, as the generator writes it for CPUs."""
    return write_language_model(path, 4)
