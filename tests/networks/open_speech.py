# SPDX-License-Identifier: Apache-2.0
"""Speech networks with open length, and models with branches and loops whose conditions depend on inputs.

TorchScript compiles the models with control flow, and the exporter writes If and Loop for them. It traces the others.
"""

import math
from typing import Tuple

import torch
from torch import nn

from open_torch import export_module, spread_weights
from open_model import size, value

SEED = 32
MELS = 80


class WhisperAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.value, self.out = (nn.Linear(width, width) for _ in range(3))
        self.key = nn.Linear(width, width, bias=False)

    def forward(self, x):
        batch, length, width = x.shape
        scale = (width // self.heads) ** -0.25
        query = self.query(x).view(batch, length, self.heads, -1).permute(0, 2, 1, 3) * scale
        key = self.key(x).view(batch, length, self.heads, -1).permute(0, 2, 3, 1) * scale
        mixed = self.value(x).view(batch, length, self.heads, -1).permute(0, 2, 1, 3)
        shares = nn.functional.softmax((query @ key).float(), dim=-1).to(query.dtype)
        return self.out((shares @ mixed).permute(0, 2, 1, 3).flatten(start_dim=2))


class WhisperBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention, self.norm1 = WhisperAttention(width, heads), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.norm2 = nn.LayerNorm(width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class WhisperEncoder(nn.Module):
    """Whisper-tiny's encoder: two convolutions, the second of stride 2, positions sliced to the frames, four blocks."""

    def __init__(self, layers=4, width=384, heads=6, context=1500):
        super().__init__()
        self.conv1 = nn.Conv1d(MELS, width, 3, padding=1)
        self.conv2 = nn.Conv1d(width, width, 3, stride=2, padding=1)
        rates = torch.exp(-math.log(10000) / (width // 2 - 1) * torch.arange(width // 2))
        angles = torch.arange(context)[:, None] * rates[None]
        self.register_buffer("positions", torch.cat([angles.sin(), angles.cos()], dim=1))
        self.blocks = nn.ModuleList([WhisperBlock(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)

    def forward(self, mel):
        x = nn.functional.gelu(self.conv2(nn.functional.gelu(self.conv1(mel)))).permute(0, 2, 1)
        x = x + self.positions[:x.size(1)]
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


class VoiceNetwork(nn.Module):
    """A voice detector for one sample rate: the spectrum by a convolution, four convolutions, and an LSTM over the frames."""

    def __init__(self, window, width=128):
        super().__init__()
        self.window = window
        times = torch.arange(window) / window
        bins = torch.arange(window // 2 + 1)[:, None]
        hann = torch.hann_window(window)
        basis = torch.cat([torch.cos(2 * math.pi * bins * times) * hann, torch.sin(2 * math.pi * bins * times) * hann])
        self.register_buffer("basis", basis[:, None].float())
        channels = [window // 2 + 1, 128, 64, 64, width]
        self.encoder = nn.Sequential(*[layer for i in range(4) for layer in (
            nn.Conv1d(channels[i], channels[i + 1], 3, stride=2 if i in (1, 2) else 1, padding=1), nn.ReLU())])
        self.lstm = nn.LSTM(width, width)
        self.decide = nn.Conv1d(width, 1, 1)

    def forward(self, samples, state) -> Tuple[torch.Tensor, torch.Tensor]:
        padded = nn.functional.pad(samples.unsqueeze(1), [0, self.window // 4], mode="reflect")
        spectrum = nn.functional.conv1d(padded, self.basis, stride=self.window // 2)
        half = self.window // 2 + 1
        power = torch.sqrt(spectrum[:, :half] ** 2 + spectrum[:, half:] ** 2)
        features = self.encoder(power).permute(2, 0, 1)
        out, (hidden, cell) = self.lstm(features, (state[0:1], state[1:2]))
        chance = torch.sigmoid(self.decide(torch.relu(out).permute(1, 2, 0)))
        return chance.mean(dim=2), torch.cat([hidden, cell])


class VoiceDetector(nn.Module):
    """A voice detector like silero's. The sample rate is an input, and chooses between two networks."""

    def __init__(self):
        super().__init__()
        self.network_16k = VoiceNetwork(256)
        self.network_8k = VoiceNetwork(128)

    def forward(self, input, state, sr):
        if bool(sr == 16000):
            output, next_state = self.network_16k(input, state)
        elif bool(sr == 8000):
            output, next_state = self.network_8k(input, state)
        else:
            output, next_state = torch.zeros(input.shape[0], 1), state
        return output, next_state


class Transducer(nn.Module):
    """The greedy decoder of an RNN-T. It takes tokens for a frame until the best one is the blank, or there are enough of
    them, and goes on to the next frame. Each token goes through an LSTM."""

    def __init__(self, width=320, hidden=256, vocabulary=128, symbols=4):
        super().__init__()
        self.hidden, self.symbols, self.blank = hidden, symbols, vocabulary - 1
        self.embedding = nn.Embedding(vocabulary, hidden)
        self.lstm = nn.LSTM(hidden, hidden)
        self.join_frame = nn.Linear(width, hidden)
        self.join_token = nn.Linear(hidden, hidden)
        self.join = nn.Linear(hidden, vocabulary)

    def forward(self, encoded):
        frames = self.join_frame(encoded)
        # A shape that only a run knows: the exporter would declare the shape of the first step for all.
        tokens = torch.zeros([encoded.shape[0] * 0], dtype=torch.long)
        hidden, cell = torch.zeros(1, 1, self.hidden), torch.zeros(1, 1, self.hidden)
        predicted, (hidden, cell) = self.lstm(self.embedding(torch.tensor([[self.blank]])), (hidden, cell))
        frame, emitted = torch.tensor(0), torch.tensor(0)
        while bool(frame < encoded.shape[0]):
            joined = self.join(torch.tanh(frames[frame] + self.join_token(predicted[0, 0])))
            best = joined.argmax(0)
            if bool(best != self.blank) and bool(emitted < self.symbols):
                tokens = torch.cat([tokens, best.reshape(1)])
                predicted, (hidden, cell) = self.lstm(self.embedding(best.reshape(1, 1)), (hidden, cell))
                emitted = emitted + 1
            else:
                frame, emitted = frame + 1, emitted * 0
        return tokens, hidden


class BeamSearch(nn.Module):
    """Beam search over a recurrent decoder with attention. Its loop ends when all beams have ended, or after max_length
    steps. Every step reorders the beams and adds a column to the tokens."""

    def __init__(self, width=256, vocabulary=1000, beams=4):
        super().__init__()
        self.beams, self.vocabulary, self.end = beams, vocabulary, 2
        self.embedding = nn.Embedding(vocabulary, width)
        self.gates = nn.Linear(3 * width, 2 * width)
        self.renew = nn.Linear(3 * width, width)
        self.query = nn.Linear(width, width)
        self.logits = nn.Linear(2 * width, vocabulary)

    def forward(self, memory, max_length):
        beams, width = self.beams, memory.shape[1]
        tokens = torch.ones([beams, 1], dtype=torch.long)
        scores = torch.cat([torch.zeros(1), torch.full([beams - 1], -1e9)])
        state = memory.mean(0, keepdim=True).expand(beams, width)
        context = torch.zeros_like(state)
        ended = torch.zeros([beams], dtype=torch.bool)
        only_end = torch.full([self.vocabulary], -1e9)
        only_end[self.end] = 0.0
        step = torch.tensor(0)
        while bool(step < max_length) and not bool(ended.all()):
            given = torch.cat([self.embedding(tokens[:, -1]), context], 1)
            keep, reset = torch.sigmoid(self.gates(torch.cat([given, state], 1))).chunk(2, 1)
            state = keep * state + (1 - keep) * torch.tanh(self.renew(torch.cat([given, reset * state], 1)))
            shares = torch.softmax(torch.matmul(self.query(state), memory.t()) / width ** 0.5, 1)
            context = torch.matmul(shares, memory)
            chances = torch.log_softmax(self.logits(torch.cat([state, context], 1)), 1)
            chances = torch.where(ended.unsqueeze(1), only_end.unsqueeze(0), chances)
            scores, picked = torch.topk((scores.unsqueeze(1) + chances).reshape(-1), beams)
            beam = torch.div(picked, self.vocabulary, rounding_mode="floor")
            token = picked - beam * self.vocabulary
            tokens = torch.cat([tokens[beam], token.unsqueeze(1)], 1)
            state, context = state[beam], context[beam]
            ended = torch.logical_or(ended[beam], token == self.end)
            step = step + 1
        return tokens, scores


def whisper_encoder(path):
    """An encoder like Whisper-tiny's: 2 to 3,000 frames of 80 mels."""
    description = {"sizes": {"batch": size(1, 2), "frames": size(2, 3000)},
                   "inputs": {"mel": value("float32", ["batch", MELS, "frames"], "normal", scale=0.5)}}
    outputs = {"encoded": ["batch", "encoded_frames", 384]}
    export_module(spread_weights(WhisperEncoder(), SEED), path, description, outputs)
    return description


def voice_detector(path):
    """A voice detector like silero VAD: state, LSTM, and an If that the sample rate decides."""
    description = {"sizes": {"batch": size(1, 4), "samples": size(256, 2048, 64)},
                   "inputs": {"input": value("float32", ["batch", "samples"], "audio"),
                              "state": value("float32", [2, "batch", 128], "normal", scale=0.5),
                              "sr": value("int64", [1], "choice", among=[8000, 16000])}}
    outputs = {"output": ["batch", 1], "stateN": [2, "batch", 128]}
    module = torch.jit.script(spread_weights(VoiceDetector(), SEED).eval())
    export_module(module, path, description, outputs, opset=16)
    return description


def transducer(path):
    """An RNN-T's greedy decoder: a Loop whose condition and whose count of tokens depend on the data."""
    description = {"sizes": {"frames": size(1, 120)},
                   "inputs": {"encoded": value("float32", ["frames", 320], "normal")}}
    module = spread_weights(Transducer(), SEED)
    with torch.no_grad():
        module.join.bias[module.blank] += 3  # most frames give no token
    export_module(torch.jit.script(module.eval()), path, description, {"tokens": ["tokens"], "state": [1, 1, 256]})
    return description


def beam_search(path):
    """Beam search of four beams over a GRU with attention, a Loop that ends when all beams have ended."""
    description = {"sizes": {"length": size(1, 60)},
                   "inputs": {"memory": value("float32", ["length", 256], "normal"),
                              "max_length": value("int64", [], "integers", low=3, high=40)}}
    module = spread_weights(BeamSearch(), SEED)
    with torch.no_grad():
        module.logits.weight.mul_(4)
        module.logits.bias[module.end] += 1  # beams end before the greatest length in some runs
    outputs = {"tokens": [4, "tokens"], "scores": [4]}
    export_module(torch.jit.script(module.eval()), path, description, outputs)
    return description
