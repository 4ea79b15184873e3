# SPDX-License-Identifier: Apache-2.0
"""Text encoders and decoders with open batch and length, written the way the transformers library writes them.

Their shape arithmetic is that library's: views by x.size(), expanded masks, sliced positions. PyTorch's exporter turns it
into Shape, Gather, Concat, Reshape, Expand and Where.
"""

import math
import os
import tempfile

import torch
from torch import nn

import onnx_file
from open_torch import export_module, spread_weights
from open_model import size, value

SEED = 30


class Embeddings(nn.Module):
    """Words, token types and positions; positions are a slice of a stored row."""

    def __init__(self, vocabulary, width, positions):
        super().__init__()
        self.word_embedding = nn.Embedding(vocabulary, width)
        self.position_embedding = nn.Embedding(positions, width)
        self.type_embedding = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.register_buffer("position_ids", torch.arange(positions).expand((1, -1)))

    def forward(self, input_ids, token_type_ids):
        positions = self.position_ids[:, :input_ids.size()[1]]
        embedded = self.word_embedding(input_ids) + self.type_embedding(token_type_ids)
        return self.norm(embedded + self.position_embedding(positions))


class SelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def split(self, x):
        return x.view(x.size()[:-1] + (self.heads, x.size()[-1] // self.heads)).permute(0, 2, 1, 3)

    def forward(self, x, mask):
        query, key, mixed = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(query.size()[-1])
        mixed = torch.matmul(nn.functional.softmax(scores + mask, dim=-1), mixed).permute(0, 2, 1, 3).contiguous()
        return mixed.view(mixed.size()[:-2] + (mixed.size()[-2] * mixed.size()[-1],))


class Layer(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.attention = SelfAttention(width, heads)
        self.project = nn.Linear(width, width)
        self.norm1 = nn.LayerNorm(width, eps=1e-12)
        self.expand = nn.Linear(width, hidden)
        self.contract = nn.Linear(hidden, width)
        self.norm2 = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x, mask):
        x = self.norm1(x + self.project(self.attention(x, mask)))
        return self.norm2(x + self.contract(nn.functional.gelu(self.expand(x))))


class Encoder(nn.Module):
    def __init__(self, layers, width, heads, vocabulary=30522, positions=512):
        super().__init__()
        self.embeddings = Embeddings(vocabulary, width, positions)
        self.layers = nn.ModuleList([Layer(width, heads, 4 * width) for _ in range(layers)])

    def encode(self, input_ids, token_type_ids, mask):
        x = self.embeddings(input_ids, token_type_ids)
        for layer in self.layers:
            x = layer(x, mask)
        return x


class Bert(Encoder):
    """BERT with its pooler. The mask is added: 0 or the least number."""

    def __init__(self, layers, width, heads):
        super().__init__(layers, width, heads)
        self.pooler = nn.Linear(width, width)

    def forward(self, input_ids, attention_mask, token_type_ids):
        mask = (1.0 - attention_mask[:, None, None, :].to(torch.float32)) * torch.finfo(torch.float32).min
        x = self.encode(input_ids, token_type_ids, mask)
        return x, torch.tanh(self.pooler(x[:, 0]))


class SentenceEncoder(Encoder):
    """The normalised mean of a sentence's words, without those that the mask hides. The mask is expanded to all queries."""

    def forward(self, input_ids, attention_mask, token_type_ids):
        batch, length = attention_mask.size()
        inverted = 1.0 - attention_mask[:, None, None, :].expand(batch, 1, length, length).to(torch.float32)
        mask = inverted.masked_fill(inverted.to(torch.bool), torch.finfo(torch.float32).min)
        x = self.encode(input_ids, token_type_ids, mask)
        kept = attention_mask.unsqueeze(-1).expand(x.size()).float()
        mean = torch.sum(x * kept, 1) / torch.clamp(kept.sum(1), min=1e-9)
        return nn.functional.normalize(mean, p=2, dim=1)


class CachedLayer(nn.Module):
    """A pre-norm decoder layer as GPT-2 has it: queries of new tokens, keys and values of the past and of the new ones."""

    def __init__(self, width, heads, context):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.expand = nn.Linear(width, 4 * width)
        self.contract = nn.Linear(4 * width, width)
        self.register_buffer("causal", torch.tril(torch.ones(context, context, dtype=torch.bool))[None, None])

    def split(self, x):
        return x.view(x.size()[:-1] + (self.heads, x.size(-1) // self.heads)).permute(0, 2, 1, 3)

    def forward(self, x, mask, past):
        query, key, mixed = (self.split(part) for part in self.qkv(self.norm1(x)).split(x.size(-1), dim=2))
        if past is not None:
            key, mixed = torch.cat((past[0], key), dim=-2), torch.cat((past[1], mixed), dim=-2)
        scores = torch.matmul(query, key.transpose(-1, -2))
        scores = scores / torch.full([], query.size(-1) ** 0.5, dtype=scores.dtype)
        new, length = query.size(-2), key.size(-2)
        least = torch.full([], torch.finfo(scores.dtype).min, dtype=scores.dtype)
        scores = torch.where(self.causal[:, :, length - new:length, :length], scores, least) + mask
        out = torch.matmul(nn.functional.softmax(scores, dim=-1), mixed).permute(0, 2, 1, 3).contiguous()
        x = x + self.project(out.view(out.size()[:-2] + (self.heads * out.size(-1),)))
        x = x + self.contract(nn.functional.gelu(self.expand(self.norm2(x)), approximate="tanh"))
        return x, key, mixed


class Decoder(nn.Module):
    """input_ids, attention_mask and the keys and values of each layer; returns logits and the longer keys and values."""

    def __init__(self, layers=4, width=512, heads=8, vocabulary=16384, context=512, has_past=True):
        super().__init__()
        self.has_past = has_past
        self.word_embedding = nn.Embedding(vocabulary, width)
        self.position_embedding = nn.Embedding(context, width)
        self.layers = nn.ModuleList([CachedLayer(width, heads, context) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.logits = nn.Linear(width, vocabulary, bias=False)

    def forward(self, input_ids, attention_mask, *past):
        before = past[0].size(-2) if self.has_past else 0
        positions = torch.arange(before, input_ids.size(-1) + before, dtype=torch.long).unsqueeze(0)
        positions = positions.view(-1, input_ids.size(-1))
        x = self.word_embedding(input_ids) + self.position_embedding(positions)
        mask = attention_mask.view(input_ids.size(0), -1)[:, None, None, :].to(x.dtype)
        mask = (1.0 - mask) * torch.finfo(x.dtype).min
        present = []
        for index, layer in enumerate(self.layers):
            x, key, mixed = layer(x, mask, past[2 * index:2 * index + 2] if self.has_past else None)
            present += [key, mixed]
        return (self.logits(self.norm(x)), *present)


TEXT_SIZES = {"batch": size(1, 4), "sequence": size(1, 256)}


def text_inputs(vocabulary=30522):
    row = ["batch", "sequence"]
    return {"input_ids": value("int64", row, "integers", low=0, high=vocabulary),
            "attention_mask": value("int64", row, "mask"),
            "token_type_ids": value("int64", row, "integers", low=0, high=2)}


def bert_small(path):
    """BERT-small: 4 layers of width 512."""
    description = {"sizes": TEXT_SIZES, "inputs": text_inputs()}
    outputs = {"last_hidden_state": ["batch", "sequence", 512], "pooler_output": ["batch", 512]}
    export_module(spread_weights(Bert(4, 512, 8), SEED), path, description, outputs, opset=14)
    return description


def minilm(path):
    """A sentence encoder like MiniLM-L6: 6 layers of width 384, mean pooling over the mask."""
    description = {"sizes": TEXT_SIZES, "inputs": text_inputs()}
    outputs = {"sentence_embedding": ["batch", 384]}
    export_module(spread_weights(SentenceEncoder(6, 384, 12), SEED), path, description, outputs, opset=11)
    return description


def cache_names(layers, prefix):
    return [f"{prefix}.{layer}.{part}" for layer in range(layers) for part in ("key", "value")]


def decoder_description(layers, heads, width, vocabulary, past):
    """past: the size, or None for the decoder of a first call."""
    length = "sequence" if past is None else "past_sequence + sequence"
    sizes = {"batch": size(1, 4), "sequence": size(1, 64)}
    inputs = {"input_ids": value("int64", ["batch", "sequence"], "integers", low=0, high=vocabulary),
              "attention_mask": value("int64", ["batch", length], "mask")}
    if past is not None:
        sizes["past_sequence"] = past
        for name in cache_names(layers, "past_key_values"):
            inputs[name] = value("float32", ["batch", heads, "past_sequence", width // heads], "normal")
    outputs = {"logits": ["batch", "sequence", vocabulary]}
    outputs.update({name: ["batch", heads, length, width // heads] for name in cache_names(layers, "present")})
    return {"sizes": sizes, "inputs": inputs}, outputs


def decoder_with_past(path):
    """A decoder like GPT-2 of 4 layers of width 512, whose keys and values of earlier tokens are inputs."""
    description, outputs = decoder_description(4, 8, 512, 16384, size(1, 192))
    export_module(spread_weights(Decoder(), SEED), path, description, outputs)
    return description


def decoder_first_call(path):
    """The same decoder with the same weights, for the first tokens: it has no past."""
    description, outputs = decoder_description(4, 8, 512, 16384, None)
    export_module(spread_weights(Decoder(has_past=False), SEED), path, description, outputs)
    return description


def shared_initializers(graphs):
    """Moves the initializers of the graphs into one list, each value once, and renames their uses."""
    names, shared = {}, []
    for graph in graphs:
        renamed = {}
        for constant in graph.initializer:
            key = (tuple(constant.dims), constant.data_type, constant.raw_data)
            if key not in names:
                names[key] = f"shared.{len(shared)}.{constant.name}"
                constant.name, old = names[key], constant.name
                shared.append(constant)
                renamed[old] = constant.name
            else:
                renamed[constant.name] = names[key]
        graph.initializer = []
        for node in graph.node:
            node.input = [renamed.get(name, name) for name in node.input]
    return shared


def merged_decoder(path):
    """Both calls of the decoder in one file, as transformers.js has them: use_cache_branch chooses, and the weights are
    shared. The branches read the inputs of the graph around them, and use the same names for their own values."""
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, name) for name in ("with_past.onnx", "first_call.onnx")]
        description = decoder_with_past(files[0])
        decoder_first_call(files[1])
        graphs = [onnx_file.load(file).graph for file in files]
    merged = onnx_file.GraphBuilder("merged")
    merged.graph.initializer = shared_initializers(graphs)
    merged.graph.input, merged.graph.output = list(graphs[0].input), list(graphs[0].output)
    merged.input("use_cache_branch", bool, [1])
    for graph in graphs:
        graph.input = []
    merged.node("If", ["use_cache_branch"], [output.name for output in graphs[0].output], then_branch=graphs[0],
                else_branch=graphs[1])
    onnx_file.save(onnx_file.model_of(merged.graph), path)
    description["sizes"]["past_sequence"] = size(0, 192, often=0)
    description["inputs"]["use_cache_branch"] = value("bool", [1], "is_positive", size="past_sequence")
    return description
