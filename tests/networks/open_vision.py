# SPDX-License-Identifier: Apache-2.0
"""Image networks with open height and width: feature pyramids, and detectors whose count of results depends on the data."""

import math

import numpy as np
import torch
import torchvision
from torch import nn
from torchvision.models import detection

import export
from open_torch import export_module
from open_model import draw_input, size, value

SEED = 31
SCORES_MIN, OVERLAP_MAX, DETECTIONS_MAX = 0.25, 0.45, 100  # of the YOLO-like detector


NORMALISED = value("float32", [], "image")  # like ImageNet's pictures
PIXELS = value("float32", [], "image", low=0, high=1)


def pictures(draw, step, **sizes):
    """The description of one input of pictures. sizes: those before height and width; a batch, or none."""
    name, shape = ("images", ["batch", 3, "height", "width"]) if sizes else ("image", [3, "height", "width"])
    sizes = {**sizes, "height": size(224, 640, step), "width": size(224, 640, step)}
    return {"sizes": sizes, "inputs": {name: {**draw, "shape": shape}}}


def sample(draw, shape):
    """A batch of pictures, as a tensor."""
    return torch.from_numpy(draw_input(np.random.default_rng(SEED), {**draw, "shape": shape}, {}))


def calibrated(make, draw):
    """make() with seeded weights, and batch norms that fit such pictures."""
    torch.manual_seed(SEED)
    module = make()
    fit_norms(module, draw)
    return module.eval()


def fit_norms(module, draw):
    export.randomise_batch_norms(module, (1, 3, 256, 256), lambda shape: sample(draw, shape))


class ConvNorm(nn.Sequential):
    """Convolution, batch norm and activation."""

    def __init__(self, inputs, outputs, kernel=3, stride=1, activation=nn.SiLU):
        super().__init__(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outputs),
                         activation())


class ResnetPyramid(nn.Module):
    """ResNet-18 and a top-down path: each level is doubled by scales, joined with the next by Concat, and convolved."""

    def __init__(self, classes=20):
        super().__init__()
        trunk = torchvision.models.resnet18(weights=None)
        self.stem = nn.Sequential(trunk.conv1, trunk.bn1, trunk.relu, trunk.maxpool, trunk.layer1)
        self.level3, self.level4, self.level5 = trunk.layer2, trunk.layer3, trunk.layer4
        self.reduce = ConvNorm(512, 256, 1, activation=nn.ReLU)
        self.nearest = nn.Upsample(scale_factor=2, mode="nearest")
        self.bilinear = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
        self.join4 = ConvNorm(512, 128, activation=nn.ReLU)
        self.join3 = ConvNorm(256, 128, activation=nn.ReLU)
        self.mask = nn.Conv2d(128, classes, 1)
        self.classify = nn.Linear(512, 1000)

    def forward(self, images):
        level3 = self.level3(self.stem(images))
        level4 = self.level4(level3)
        level5 = self.level5(level4)
        joined = self.join4(torch.cat([self.nearest(self.reduce(level5)), level4], 1))
        joined = self.join3(torch.cat([self.bilinear(joined), level3], 1))
        pooled = nn.functional.adaptive_avg_pool2d(level5, 1)
        return self.classify(torch.flatten(pooled, 1)), self.mask(joined)


class MobilenetPyramid(nn.Module):
    """MobileNetV2 and a pyramid as torchvision builds it: each level is resized to the next one's size, so any picture fits."""

    def __init__(self):
        super().__init__()
        features = torchvision.models.mobilenet_v2(weights=None).features
        self.level3, self.level4, self.level5 = features[:7], features[7:14], features[14:18]
        self.pyramid = torchvision.ops.FeaturePyramidNetwork([32, 96, 320], 64)
        self.head = nn.Conv2d(64, 8, 3, padding=1)

    def forward(self, images):
        level3 = self.level3(images)
        level4 = self.level4(level3)
        levels = self.pyramid({"3": level3, "4": level4, "5": self.level5(level4)})
        finest = self.head(levels["3"])
        return nn.functional.interpolate(finest, size=images.shape[-2:], mode="bilinear", align_corners=False)


class Bottlenecks(nn.Module):
    """YOLO's cross-stage block: half of the channels go through a bottleneck, and all parts are joined at the end."""

    def __init__(self, inputs, outputs, adds):
        super().__init__()
        half = outputs // 2
        self.adds = adds
        self.split = ConvNorm(inputs, outputs, 1)
        self.steps = nn.Sequential(ConvNorm(half, half), ConvNorm(half, half))
        self.join = ConvNorm(3 * half, outputs, 1)

    def forward(self, x):
        left, right = self.split(x).chunk(2, 1)
        last = self.steps(right)
        return self.join(torch.cat([left, right, right + last if self.adds else last], 1))


class PooledPyramid(nn.Module):
    """Three max pools in a row, joined."""

    def __init__(self, channels):
        super().__init__()
        self.reduce = ConvNorm(channels, channels // 2, 1)
        self.pool = nn.MaxPool2d(5, 1, 2)
        self.join = ConvNorm(2 * channels, channels, 1)

    def forward(self, x):
        levels = [self.reduce(x)]
        for _ in range(3):
            levels.append(self.pool(levels[-1]))
        return self.join(torch.cat(levels, 1))


class SelectBoxes(torch.autograd.Function):
    """ONNX's NonMaxSuppression. The exporter calls symbolic; forward only gives a result of the right form."""

    @staticmethod
    def forward(_, boxes, scores, __, ___, ____):
        picked = torch.arange(min(8, boxes.shape[1]))
        return torch.stack([torch.zeros_like(picked), picked % scores.shape[1], picked], 1)

    @staticmethod
    def symbolic(graph, boxes, scores, count, overlap, least):
        return graph.op("NonMaxSuppression", boxes, scores, count, overlap, least, center_point_box_i=0)


class Yolo(nn.Module):
    """A detector like YOLOv8 nano: three levels, boxes as distances from cells, and NonMaxSuppression for each class."""

    def __init__(self, classes=20, bins=8):
        super().__init__()
        self.classes, self.bins = classes, bins
        self.stem = nn.Sequential(ConvNorm(3, 16, stride=2), ConvNorm(16, 32, stride=2), Bottlenecks(32, 32, True))
        self.level3 = nn.Sequential(ConvNorm(32, 64, stride=2), Bottlenecks(64, 64, True))
        self.level4 = nn.Sequential(ConvNorm(64, 128, stride=2), Bottlenecks(128, 128, True))
        self.level5 = nn.Sequential(ConvNorm(128, 256, stride=2), Bottlenecks(256, 256, True), PooledPyramid(256))
        self.upsample = nn.Upsample(scale_factor=2, mode="nearest")
        self.up4, self.up3 = Bottlenecks(384, 128, False), Bottlenecks(192, 64, False)
        self.down4, self.down5 = ConvNorm(64, 64, stride=2), ConvNorm(128, 128, stride=2)
        self.join4, self.join5 = Bottlenecks(192, 128, False), Bottlenecks(384, 256, False)
        self.boxes = nn.ModuleList([nn.Sequential(ConvNorm(c, 64), nn.Conv2d(64, 4 * bins, 1)) for c in (64, 128, 256)])
        self.scores = nn.ModuleList([nn.Sequential(ConvNorm(c, 64), nn.Conv2d(64, classes, 1)) for c in (64, 128, 256)])
        self.register_buffer("distances", torch.arange(bins, dtype=torch.float32))

    def levels(self, images):
        level3 = self.level3(self.stem(images))
        level4 = self.level4(level3)
        level5 = self.level5(level4)
        up4 = self.up4(torch.cat([self.upsample(level5), level4], 1))
        up3 = self.up3(torch.cat([self.upsample(up4), level3], 1))
        down4 = self.join4(torch.cat([self.down4(up3), up4], 1))
        return up3, down4, self.join5(torch.cat([self.down5(down4), level5], 1))

    def decode(self, level, features, stride):
        """Corners of the boxes in pixels [batch, cells, 4] and scores [batch, classes, cells] of one level."""
        batch, _, rows, columns = features.shape
        shares = self.boxes[level](features).view(batch, 4, self.bins, rows * columns).softmax(2)
        left_up, right_down = (shares * self.distances.view(1, 1, -1, 1)).sum(2).transpose(1, 2).chunk(2, 2)
        y, x = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
        centres = torch.stack((x, y), 2).view(1, -1, 2).float() + 0.5
        boxes = torch.cat([centres - left_up, centres + right_down], 2) * stride
        return boxes, self.scores[level](features).view(batch, self.classes, -1).sigmoid()

    def forward(self, images):
        decoded = [self.decode(level, features, 8 << level) for level, features in enumerate(self.levels(images))]
        boxes = torch.cat([boxes for boxes, _ in decoded], 1)
        scores = torch.cat([scores for _, scores in decoded], 2)
        picked = SelectBoxes.apply(boxes, scores, torch.tensor([DETECTIONS_MAX]), torch.tensor([OVERLAP_MAX]),
                                   torch.tensor([SCORES_MIN]))
        image, label, cell = picked[:, 0], picked[:, 1], picked[:, 2]
        columns = [image.unsqueeze(1).float(), boxes[image, cell], label.unsqueeze(1).float(),
                   scores[image, label, cell].unsqueeze(1)]
        return torch.cat(columns, 1)


def aim_scores(module, images):
    """Scales each level's scores so that three in a thousand pass the least score."""
    passes = math.log(SCORES_MIN / (1 - SCORES_MIN))
    with torch.no_grad():
        for layers, features in zip(module.scores, module.levels(images)):
            logits = layers(features)
            layers[1].weight.div_(logits.std())
            layers[1].bias.sub_(logits.quantile(0.997)).div_(logits.std()).add_(passes)


class FasterRcnn(nn.Module):
    """torchvision's Faster R-CNN over ResNet-18 and a pyramid of three levels, for one image."""

    def __init__(self):
        super().__init__()
        backbone = detection.backbone_utils.resnet_fpn_backbone(
            backbone_name="resnet18", weights=None, norm_layer=nn.BatchNorm2d, trainable_layers=5, returned_layers=[2, 3, 4])
        self.detector = detection.FasterRCNN(
            backbone, num_classes=21, min_size=320, max_size=640,
            rpn_anchor_generator=detection.anchor_utils.AnchorGenerator(
                ((32,), (64,), (128,), (256,)), ((0.5, 1.0, 2.0),) * 4),
            box_roi_pool=torchvision.ops.MultiScaleRoIAlign(["0", "1", "2"], 7, 2),
            rpn_pre_nms_top_n_test=150, rpn_post_nms_top_n_test=100, box_score_thresh=0.3, box_detections_per_img=100)

    def forward(self, image):
        found = self.detector([image])[0]
        return found["boxes"], found["labels"], found["scores"]


def resnet_pyramid(path):
    """ResNet-18 with a pyramid by scales, height and width any multiple of 32 from 224 to 640."""
    description = pictures(NORMALISED, 32, batch=size(1, 2))
    outputs = {"classes": ["batch", 1000], "mask": ["batch", 20, "mask_height", "mask_width"]}
    export_module(calibrated(ResnetPyramid, NORMALISED), path, description, outputs)
    return description


def mobilenet_pyramid(path):
    """MobileNetV2 with a pyramid by sizes, any height and width from 224 to 640."""
    description = pictures(NORMALISED, 1, batch=size(1, 2))
    outputs = {"mask": ["batch", 8, "height", "width"]}
    export_module(calibrated(MobilenetPyramid, NORMALISED), path, description, outputs)
    return description


def yolo(path):
    """A detector like YOLOv8 nano with decoding and NonMaxSuppression: [detections, 7] of image, box, class and score."""
    description = pictures(PIXELS, 32, batch=size(1, 2))
    module = calibrated(Yolo, PIXELS)
    aim_scores(module, sample(PIXELS, (2, 3, 416, 416)))
    export_module(module, path, description, {"detections": ["detections", 7]})
    return description


def faster_rcnn(path):
    """torchvision's Faster R-CNN: two stages of NonMaxSuppression, and RoiAlign on the level that fits each box."""
    torch.manual_seed(SEED)
    module = FasterRcnn()
    detector = module.detector
    fit_norms(detector.backbone, NORMALISED)  # the detector itself normalises its pixels
    with torch.no_grad():  # scores and boxes that differ from each other
        detector.rpn.head.cls_logits.weight.mul_(20)
        detector.rpn.head.bbox_pred.weight.mul_(3)
        detector.roi_heads.box_predictor.cls_score.weight.mul_(10)
    description = pictures(PIXELS, 1)
    outputs = {"boxes": ["detections", 4], "labels": ["detections"], "scores": ["detections"]}
    # torchvision writes RoiAlign without the attribute that opset 16 brought, so a newer file would mean another shift.
    export_module(module, path, description, outputs, opset=14)
    return description
