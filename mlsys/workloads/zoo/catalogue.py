"""The entries of the catalogue, by name."""

from dataclasses import replace
from functools import partial
from typing import Any

from mlsys.inputs import shipped_text, yaml_of
from mlsys.workloads.zoo import (
    classic,
    detection,
    diffusion,
    diffusion_transformers,
    encoder_decoder,
    encoders,
    lprnet,
    maxvit,
    mobile,
    nas,
    perceiver,
    recommenders,
    recurrent,
    residual,
    segmentation,
    semantic_segmentation,
    transformer_xl,
    yolo,
    yolo_v4_v7,
    yolo_v10_v11,
)
from mlsys.workloads.zoo.cnn_builder import Shape
from mlsys.workloads.zoo.detectors import detectors
from mlsys.workloads.zoo.entry import Entry
from mlsys.workloads.zoo.language_models import LANGUAGE_MODELS
from mlsys.workloads.zoo.layer_builder import LayerBuilder

CATALOGUE: dict[str, Entry] = {}
_RGB224: Shape = (3, 224, 224)


def _picture(
    name: str, title: str, source: str, draw: Any, *aliases: str, side: int = 224, shape: Shape | None = None,
    family: str = "picture", normalised: bool = True, note: str = "",
) -> None:  # fmt: skip
    CATALOGUE[name] = Entry(
        name, title, family, source, aliases, image=shape or (3, side, side), draw=draw, normalised=normalised,
        note=note,
    )  # fmt: skip


_picture("alexnet_convolutions", "AlexNet conv layers", "Krizhevsky et al. 2012, NeurIPS, section 3.5 (two towers)",
         classic.alexnet_convolutions, side=227, normalised=False)  # fmt: skip
_picture("vgg16_convolutions", "VGG-16 conv layers", "Simonyan & Zisserman 2015, arXiv:1409.1556, table 1",
         classic.vgg16_convolutions, normalised=False)  # fmt: skip
_picture("googlenet", "GoogLeNet", "Szegedy et al. 2015, CVPR, table 1; 3 × 3 for 5 × 5 as in the code that is shipped",
         partial(classic.googlenet, five=3), "Inception v1")  # fmt: skip
_picture("inception_v3", "Inception v3", "Szegedy et al. 2016, CVPR, table 1", classic.inception_v3, side=299)
_picture("inception_v4", "Inception v4", "Szegedy et al. 2017, AAAI, figures 3 to 9", classic.inception_v4, side=299)
for _depth in classic.VGGS:
    _picture(f"vgg{_depth}_bn", f"VGG-{_depth}, normalised", "Simonyan & Zisserman 2015, arXiv:1409.1556, table 1; "
             "torchvision", partial(classic.vgg_normalised, depth=_depth))  # fmt: skip
_HE = "He et al. 2016, CVPR, table 1"
for _depth in residual.RESNETS:
    _later = f"{_HE}; stride in the 3 × 3 (v1.5)" if _depth >= 50 else _HE
    _picture(f"resnet{_depth}", f"ResNet-{_depth}", _later, partial(residual.resnet, depth=_depth),
             f"ResNet-{_depth} v1.5")  # fmt: skip
    if _depth >= 50:
        _picture(f"resnet{_depth}_v1", f"ResNet-{_depth} v1", f"{_HE}; stride in the first 1 × 1 (v1)",
                 partial(residual.resnet, depth=_depth, early_stride=True))  # fmt: skip
for _depth in (50, 101, 152):
    _picture(f"resnet{_depth}_v2", f"ResNet-{_depth} v2", "He et al. 2016, ECCV, figure 4 (e); stride in the 3 × 3",
             partial(residual.resnet, depth=_depth), f"ResNet{_depth}-v2",
             note="matrix products of v1.5; normalised before each, not after")  # fmt: skip
_picture("resnet50_vd", "ResNet-50-D", "He et al. 2019, CVPR, figure 2 (d); stride in the 3 × 3",
         partial(residual.resnet_deep_stem, depth=50), "resnet50d")  # fmt: skip
_picture("resnext50_32x4d", "ResNeXt-50 32×4d", "Xie et al. 2017, CVPR, table 1",
         partial(residual.resnet, depth=50, groups=32, width=4), "resnext50")  # fmt: skip
for _groups in (32, 64):
    _picture(f"resnext101_{_groups}x4d", f"ResNeXt-101 {_groups}×4d", "Xie et al. 2017, CVPR, section 5.1 and table 4",
             partial(residual.resnet, depth=101, groups=_groups, width=4))  # fmt: skip
_picture("resnext101_32x8d", "ResNeXt-101 32×8d", "Xie et al. 2017, CVPR; Mahajan et al. 2018",
         partial(residual.resnet, depth=101, groups=32, width=8))  # fmt: skip
_picture("wide_resnet50_2", "Wide ResNet-50-2", "Zagoruyko & Komodakis 2016, arXiv:1605.07146",
         partial(residual.resnet, depth=50, width=128), "WideResNet50", "wide_resnet50")  # fmt: skip
for _name, _aliases in {"x_3_2gf": ("RegNet", "regnetx_032"), "y_200mf": ("regnety_002", "regnetY200"),
                        "y_400mf": ("regnety_004", "regnetY400"), "y_800mf": ("regnety_008", "regnetY800"),
                        "y_3_2gf": ("regnety_032",), "y_16gf": ("regnety_160",)}.items():  # fmt: skip
    _picture(f"regnet_{_name}", f"RegNet{_name.replace('_', ' ', 1).upper().replace('_', '.')}",
             "Radosavovic et al. 2020, CVPR, section 3.3", partial(residual.regnet, name=_name), *_aliases)  # fmt: skip
for _width in (1.0, 0.75, 0.5, 0.25):
    _picture(f"mobilenet_v1_{_width}", f"MobileNet v1 {_width}", "Howard et al. 2017, arXiv:1704.04861, table 1",
             partial(mobile.mobilenet_v1, width=_width),
             *(("mobilenet_v1", "mobilenetv1_100", "mobilenet") if _width == 1 else ()))  # fmt: skip
for _width in (1.0, 0.35, 0.5, 0.75, 1.4):
    _short = f"mobilenetv2_{round(100 * _width):03d}"
    _picture("mobilenet_v2" if _width == 1 else f"mobilenet_v2_{_width}", f"MobileNet v2 {_width}",
             "Sandler et al. 2018, CVPR, table 2", partial(mobile.mobilenet_v2, width=_width), _short,
             f"MobileNetV2 {_width} (ImageNet)", f"mobilenet v2 {_width}")  # fmt: skip
_picture("mobilenet_v2_0.35_5", "MobileNet v2 0.35, five classes", "Sandler et al. 2018, CVPR, table 2",
         partial(mobile.mobilenet_v2, width=0.35, classes=5), "MobileNetV2 0.35 (5-class)", side=128)  # fmt: skip
_picture("mobilenet_v2_0.3_thin", "MobileNet v2 0.3 at 64, last layer thin",
         "mit-han-lab/tinyml, mcunet/assets/configs, mbv2-w0.3-r80_imagenet.json",
         partial(mobile.mobilenet_v2, width=0.3, thin=True), "mbv2-w0.3-r64", side=64)  # fmt: skip
_MCUNET = {"in": "mit-han-lab/tinyml, mcunet/assets/configs", "vww1": "mit-han-lab/tinyengine, assets/vww.tflite",
           "vww2": "Wake Vision challenge, data-centric track"}  # fmt: skip
for _name, _side in {"in0": 48, "in1": 96, "in2": 160, "in3": 176, "in4": 160, "vww1": 80, "vww2": 144}.items():
    _picture(f"mcunet_{_name}", f"MCUNet {_name.upper()}",
             f"Lin et al. 2020, NeurIPS; {_MCUNET.get(_name, _MCUNET['in'])}",
             partial(nas.mcunet, name=_name, classes=1000 if _name.startswith("in") else 2),
             f"mcunet-{_name}", side=_side)  # fmt: skip
_PROXYLESS = "Cai et al. 2019, ICLR; mit-han-lab/tinyml, mcunet/assets/configs"
_picture("proxyless_mobile", "ProxylessNAS Mobile", _PROXYLESS, partial(nas.proxyless_mobile, width="1.0"))
for _side in (176, 64):
    _picture(f"proxyless_mobile_0.3_{_side}", f"ProxylessNAS Mobile 0.3 at {_side}", _PROXYLESS,
             partial(nas.proxyless_mobile, width="0.3"), f"proxyless-w0.3-r{_side}", side=_side)  # fmt: skip
for _size in mobile.MOBILENET_V3:
    _picture(f"mobilenet_v3_{_size}", f"MobileNet v3 {_size}", "Howard et al. 2019, ICCV, tables 1 and 2",
             partial(mobile.mobilenet_v3, size=_size), f"mobilenetv3_{_size}_100")  # fmt: skip
for _width in (1.0, 0.5):
    _picture(f"mnasnet_{_width}", f"MnasNet-B1 {_width}", "Tan et al. 2019, CVPR",
             partial(mobile.mnasnet, width=_width),
             f"mnasnet{_width}".replace(".", "_"), *(("mnasnet",) if _width == 1 else ()))  # fmt: skip
for _wide in mobile.SHUFFLENET_V2:
    _picture(f"shufflenet_v2_{_wide}", f"ShuffleNet v2 {_wide}×", "Ma et al. 2018, ECCV, table 5",
             partial(mobile.shufflenet_v2, width=_wide), f"shufflenet_v2_x{_wide.replace('.', '_')}",
             *(("shufflenet_v2",) if _wide == "1.0" else ()))  # fmt: skip

_VIT = "Dosovitskiy et al. 2021, ICLR, table 1"
for _size, _patch, _side in (("tiny", 16, 224), ("small", 16, 224), ("base", 16, 224), ("base", 16, 384),
                             ("base", 32, 224), ("base", 32, 384), ("large", 16, 224), ("large", 14, 224),
                             ("huge", 14, 224)):  # fmt: skip
    _same = [f"ViT-{_size[0].upper()}/{_patch} {_side}x{_side}", f"ViT-{_size[0].upper()}/{_patch} {_side}"]
    if _side == 224:
        _same += [f"vit_{_size[0]}_{_patch}", f"vit_{_size}_{_patch}", f"vit_{_size}_patch{_patch}"]
    if (_size, _patch, _side) == ("small", 16, 224):
        _same += ["timm_vision_transformer"]  # the name of this network in torchbench
    if (_size, _patch, _side) == ("base", 16, 224):
        _same += ["vit", "vit base"]
    if _size in ("tiny", "small", "base") and _patch == 16 and _side == 224:
        _same += [f"deit_{_size}_patch16_224", f"deit_{_size}", f"DeiT-{_size[0].upper()}"]
    _picture(f"vit_{_size}_patch{_patch}_{_side}", f"ViT-{_size.capitalize()}/{_patch} at {_side}",
             _VIT if _size in ("base", "large", "huge") else "Touvron et al. 2021, ICML, table 1",
             partial(encoders.vit, size=_size, patch=_patch), *_same, side=_side)  # fmt: skip
_picture("clip_vit_base_patch32", "CLIP picture encoder, ViT-B/32",
         "Radford et al. 2021, ICML; openai/CLIP, clip/model.py",
         encoders.clip_picture, "CLIP image encoder ViT-B/32")  # fmt: skip
for _size in encoders.SWINS:
    _picture(f"swin_{_size}", f"Swin-{_size[0].upper()}", "Liu et al. 2021, ICCV, section 3.3",
             partial(encoders.swin, size=_size), f"swin_{_size}_patch4_window7_224", f"swin_{_size[0]}")  # fmt: skip
for _size in encoders.CONVNEXTS:
    _picture(f"convnext_{_size}", f"ConvNeXt-{_size[0].upper()}", "Liu et al. 2022, CVPR, section 3",
             partial(encoders.convnext, size=_size))  # fmt: skip
for _size in maxvit.MAXVITS:
    _picture(f"maxvit_{_size}", f"MaxViT-{_size[0].upper()}", "Tu et al. 2022, ECCV; huggingface/pytorch-image-models",
             partial(maxvit.maxvit, size=_size), f"maxvit_{_size}_tf_224")  # fmt: skip
for _kind in ("fourier", "learned"):
    _picture(f"perceiver_{_kind}", f"Perceiver IO, {_kind} places",
             "Jaegle et al. 2022, ICLR; huggingface/transformers, models/perceiver",
             partial(perceiver.perceiver, learned=_kind == "learned"), f"vision-perceiver-{_kind}", normalised=False,
             note="a classifier that reads single pixels")  # fmt: skip
_MIXER = "Tolstikhin et al. 2021, NeurIPS, table 1"
_picture("mixer_b16_224", "Mixer-B/16", _MIXER,
         partial(encoders.mixer, patch=16, layers=12, width=768, inner=(384, 3072)), "mixer_b16")  # fmt: skip
_picture("mixer_s32_224", "Mixer-S/32", _MIXER,
         partial(encoders.mixer, patch=32, layers=8, width=512, inner=(256, 2048)), "mixer_s32")  # fmt: skip

_picture("ssd_resnet34", "SSD-ResNet34 at 1200", "Reddi et al. 2020, ISCA, table 1; MLPerf Inference v0.5 to v1.1",
         detection.ssd_resnet34, side=1200, family="detector",
         note="work as in table 1; the parameters there are those of another implementation")  # fmt: skip
_SSD = "Huang et al. 2017, CVPR (TensorFlow object detection), 300 × 300, 91 outputs a box"
_picture("ssd300_resnet50", "SSD300 v1.1, ResNet-50", "Liu et al. 2016, ECCV; NVIDIA/DeepLearningExamples, "
         "PyTorch/Detection/SSD",
         detection.ssd300_resnet50, "SSD300", "SSD300 v1.1", side=300, family="detector")  # fmt: skip
_picture("ssd_mobilenet_v1", "SSD-MobileNet v1", _SSD, partial(detection.ssd_mobilenet, version=1), side=300,
         family="detector")  # fmt: skip
_picture("ssd_mobilenet_v1_0.75", "SSD-MobileNet v1 0.75", _SSD,
         partial(detection.ssd_mobilenet, version=1, width=0.75), "SSD MobileNet v1 0.75 depth", side=300,
         family="detector", note="extra layers at full width")  # fmt: skip
_picture("ssd_mobilenet_v2", "SSD-MobileNet v2", _SSD, partial(detection.ssd_mobilenet, version=2), side=300,
         family="detector", note="heads of 1 × 1 assumed, as in version 1")  # fmt: skip
_picture("retinanet_resnext50", "RetinaNet-ResNeXt50 at 800",
         "Lin et al. 2017, ICCV; MLPerf Inference v2.1 (OpenImages)", detection.retinanet,
         "RetinaNet-ResNeXt50", "retinanet", side=800, family="detector")  # fmt: skip

_picture("retinaface_resnet50", "RetinaFace, ResNet-50, at 640", "Deng et al. 2020, CVPR; biubug6/Pytorch_Retinaface",
         detection.retinaface, "RetinaFace ResNet-50", side=640, family="detector")  # fmt: skip

_YOLO = "Ultralytics, release {}: the layers of its configuration"
for _size in yolo.SIZES:
    _picture(f"yolov5{_size}", f"YOLOv5{_size} at 640", _YOLO.format("6 of YOLOv5"), partial(yolo.yolo_v5, size=_size),
             side=640, family="detector", note="80 classes; without non-maximum suppression")  # fmt: skip
    _picture(f"yolov8{_size}", f"YOLOv8{_size} at 640", _YOLO.format("8"), partial(yolo.yolo_v8, size=_size),
             *(("YOLOv8-Detection",) if _size == "n" else ()), side=640, family="detector",
             note="80 classes; without non-maximum suppression")  # fmt: skip
    if _size != "n":
        _picture(f"yolox_{_size}", f"YOLOX-{_size.upper()} at 640", "Ge et al. 2021, arXiv:2107.08430",
                 partial(yolo.yolox, size=_size), side=640, family="detector",
                 note="80 classes; without non-maximum suppression")  # fmt: skip

for _size in yolo_v10_v11.SIZES_11:
    _picture(f"yolo11{_size}", f"YOLO11{_size} at 640", _YOLO.format("11"), partial(yolo_v10_v11.yolo_11, size=_size),
             f"yolov11{_size}", side=640, family="detector",
             note="80 classes; without non-maximum suppression")  # fmt: skip
_picture("yolov10n", "YOLOv10n at 640", "Wang et al. 2024, arXiv:2405.14458; ultralytics, yolov10n.yaml",
         yolo_v10_v11.yolo_v10_nano, side=640, family="detector",
         note="80 classes; the one-to-one head used in deployment")  # fmt: skip
_picture("yolov4_tiny", "YOLOv4-tiny at 416", "WongKinYiu/ScaledYOLOv4, cfg/yolov4-tiny.cfg", yolo_v4_v7.yolo_v4_tiny,
         "tiny_yolov4", side=416, family="detector", note="80 classes; without non-maximum suppression")  # fmt: skip
_picture("yolov7_tiny", "YOLOv7-tiny at 640", "WongKinYiu/yolov7, cfg/deploy/yolov7-tiny.yaml", yolo_v4_v7.yolo_v7_tiny,
         side=640, family="detector", note="80 classes; without non-maximum suppression")  # fmt: skip
for _size, _side, _also in (("a0", 416, "nanodet_repvgg"), ("a1", 640, "nanodet_repvgg_a1_640")):
    _picture(f"nanodet_repvgg_{_size}", f"NanoDet, RepVGG-{_size.upper()}, at {_side}",
             "RangiLyu/nanodet, config/RepVGG; hailo-ai/hailo_model_zoo",
             partial(yolo_v4_v7.nanodet_repvgg, size=_size), _also, side=_side, family="detector",
             note="width of the last stage inferred from published totals")  # fmt: skip
for _size, _width in {"n": 0.25, "s": 0.5}.items():
    _picture(f"yolov6{_size}", f"YOLOv6{_size} at 640", "Li et al. 2022, arXiv:2209.02976; meituan/YOLOv6, release 0.2",
             partial(yolo_v4_v7.yolo_v6, width=_width), side=640, family="detector",
             note="80 classes; branches folded, without non-maximum suppression")  # fmt: skip

CATALOGUE.update({each.name: each for each in detectors()})

_DIFFUSERS = "huggingface/diffusers, unet_2d_condition.py"
for _name, _title, _side, _source in (
    ("sd_v1", "Stable Diffusion 1 at 512", 64, "Rombach et al. 2022, CVPR"),
    ("sd_v2", "Stable Diffusion 2 at 512", 64, "Rombach et al. 2022, CVPR"),
    ("sdxl", "SDXL at 1024", 128, "Podell et al. 2023, arXiv:2307.01952"),
):
    _picture(f"{_name}_unet", f"U-Net of {_title}", f"{_source}; {_DIFFUSERS}",
             partial(diffusion.denoiser, name=_name), shape=(4, _side, _side), family="diffusion", normalised=False,
             note="one denoising step; an image takes many")  # fmt: skip
_picture("sd_decoder", "Decoder of Stable Diffusion's latents at 1024", "huggingface/diffusers, autoencoder_kl.py",
         diffusion.latent_decoder, shape=(4, 128, 128), family="diffusion", normalised=False)  # fmt: skip

for _depth, _stride in ((18, 8), (50, 8), (101, 8), (50, 32)):
    _picture(f"pspnet_resnet{_depth}_stride{_stride}", f"PSPNet, ResNet-{_depth}, stride {_stride}",
             "Zhao et al. 2017, CVPR; open-mmlab/mmsegmentation, configs/pspnet",
             partial(semantic_segmentation.pspnet, depth=_depth, stride=_stride),
             f"PSPNet (ResNet-{_depth}, stride {_stride})",
             shape=(3, 1024, 2048), family="segmentation",
             note="19 classes; output not upsampled to the input size")  # fmt: skip
_picture("unet_5_64", "U-Net of torchgpipe, five convolutions a level, 64 channels",
         "Kim et al. 2020, arXiv:2004.09910; kakaobrain/torchgpipe, benchmarks/models/unet",
         partial(semantic_segmentation.unet_of_gpipe, convs=5, width=64), "U-Net (5, 64)", side=192,
         family="segmentation")  # fmt: skip
_picture("lprnet", "LPRNet at 24 × 94", "Zherzdev & Gruzdev 2018, arXiv:1806.10447; sirius-ai/LPRNet_Pytorch",
         lprnet.lprnet, "LPRNet", shape=(3, 24, 94))  # fmt: skip
_picture("tpu_cnn0", "CNN0 of the first TPU", "Jouppi et al. 2017, ISCA, table 1", recommenders.tpu_cnn0,
         "CNN0 (16 conv layers, 8M weights)", shape=(236, 19, 19), family="production", normalised=False,
         note="shape inferred from three published totals")  # fmt: skip


def _rows(name: str, title: str, family: str, source: str, write: Any, *aliases: str, note: str = "") -> None:
    CATALOGUE[name] = Entry(
        name, title, family, source, aliases, write=lambda builder, batch, _: write(builder, batch), note=note
    )


_rows("flux", "FLUX.1 at 1024", "diffusion", "black-forest-labs/flux, src/flux/model.py", diffusion_transformers.flux,
      "FLUX.1-dev", "FLUX.1-schnell",
      note="one denoising step, without text encoders; an image takes 4 to 28")  # fmt: skip
for _size in diffusion_transformers.COGVIDEOX:
    _rows(f"cogvideox_{_size}", f"CogVideoX-{_size.upper()}, 49 frames", "diffusion",
          "Yang et al. 2025, ICLR; THUDM/CogVideo", partial(diffusion_transformers.cogvideox, size=_size),
          f"CogVideoX-{_size.upper()}",
          note="one denoising step, without text encoders; a video takes 50, each evaluated twice")  # fmt: skip
for _name, _layers, _weights, _spelled in (
    ("mlp0", 5, 20_000_000, "MLP0 (5 FC layers, 20M weights)"),
    ("mlp1", 4, 5_000_000, "MLP1 (4 FC layers, 5M weights)"),
    ("lstm1", 37, 34_000_000, "LSTM1 (37 FC + 19 vector layers, 34M weights)"),
):
    _rows(f"tpu_{_name}", f"{_name.upper()} of the first TPU", "production", "Jouppi et al. 2017, ISCA, table 1",
          partial(recommenders.tpu_dense, layers=_layers, weights=_weights), _spelled,
          note="equal square layers with the published total of weights")  # fmt: skip
_rows("unet3d_kits19", "3D-UNet on a window of 128³", "segmentation",
      "Isensee et al. 2021, Nature Methods; mlcommons/training", segmentation.unet3d, "3d-unet", "unet3d",
      note="one window; MLPerf Inference cuts a scan into many that overlap by half")  # fmt: skip
_rows("unet3d_brats", "3D-UNet on a scan of 224 × 224 × 160", "segmentation",
      "Isensee et al. 2021, Nature Methods; mlcommons/inference, 3d-unet-brats19", segmentation.unet3d_brats,
      note="MLPerf Inference v0.7 to v1.1; four modalities, one scan a sample")  # fmt: skip
CATALOGUE["rnn_t"] = Entry(
    "rnn_t", "RNN-T, MLPerf Inference", "speech and sensors", "Graves 2012, arXiv:1211.3711; MLPerf Inference, rnnt",
    ("RNN-T",), sequence=240, write=recurrent.rnn_t,
    note="one utterance of 7.2 s, the mean of LibriSpeech dev-clean; one decoding step per pair of frames",
)  # fmt: skip
CATALOGUE["gnmt"] = Entry(
    "gnmt", "GNMT, MLPerf", "text", "Wu et al. 2016, arXiv:1609.08144; NVIDIA/DeepLearningExamples, GNMT v2",
    ("GNMT",), sequence=32, write=recurrent.gnmt,
    note="a sentence and a translation of equal length, teacher-forced; beam search decodes word by word in each beam",
)  # fmt: skip
for _size, _shape in (("base", transformer_xl.BASE), ("large", transformer_xl.LARGE)):
    CATALOGUE[f"transformer_xl_{_size}"] = Entry(
        f"transformer_xl_{_size}", f"Transformer-XL {_size}, WikiText-103", "text",
        "Dai et al. 2019, ACL; NVIDIA/DeepLearningExamples, PyTorch/LanguageModeling/Transformer-XL",
        sequence=_shape.tokens,
        write=partial(transformer_xl.transformer_xl, shape=_shape),
        note="memory as long as the segment; full softmax over the vocabulary",
    )  # fmt: skip
CATALOGUE["switch_xl_4"] = Entry(
    "switch_xl_4", "Switch Transformer XL, 4 experts", "text",
    "Fedus et al. 2022, JMLR 23:120; sitar-lab/NeuSight, DLmodel_configs/switchxl4.json",
    ("Switch Transformer XL, 4 experts (encoder-decoder MoE)",), sequence=512,
    write=encoder_decoder.writer(encoder_decoder.SWITCH_XL_4),
    note="encoder and decoder with equal token counts; experts compute their whole capacity of 64 tokens",
)  # fmt: skip
_rows("dlrm", "DLRM, MLPerf v1", "recommender", "Naumov et al. 2019, arXiv:1906.00091; MLPerf Training v0.7 to v2.0",
      recommenders.dlrm)  # fmt: skip
_rows("dlrm_dcnv2", "DLRM-DCNv2", "recommender", "Wang et al. 2021, WWW; MLPerf Training v2.1 and later",
      partial(recommenders.dlrm, crossed=True), "DLRM-DCNv2")  # fmt: skip


def _write_bert(builder: LayerBuilder, batch: int, tokens: int, shape: encoders.TextEncoder) -> None:
    encoders.bert(builder, batch, tokens, shape)


for _name, _text in yaml_of(shipped_text("mlsys.workloads.zoo", "encoders.yaml"))["encoders"].items():
    CATALOGUE[_name] = Entry(
        _name, _text["title"], "text", _text["source"], tuple(_text.get("also", ())),
        sequence=_text.get("sequence", 128), write=partial(_write_bert, shape=encoders.TextEncoder(**_text["shape"])),
    )  # fmt: skip

for _name, (_model, _source, _others) in LANGUAGE_MODELS.items():
    CATALOGUE[_name] = Entry(_name, _model.name, "language", _source, _others, sequence=512, model=_model)

_TINY = "Banbury et al. 2021, NeurIPS Datasets and Benchmarks, table 1; mlcommons/tiny"
_picture("vww_mobilenet_v1_0.25", "MLPerf Tiny visual wake words, MobileNet v1 0.25", _TINY,
         partial(mobile.mobilenet_v1, width=0.25, classes=2, bias=True), "VWW MobileNetV1-0.25", "vww",
         "vww_mobilenet_v1", side=96)  # fmt: skip

# Networks whose recipe states the inputs of every layer: graph and PyTorch module follow from it.
_DRAWN = (
    *(f"resnet{depth}" for depth in residual.RESNETS),
    *("mobilenet_v1_1.0", "mobilenet_v2", "vww_mobilenet_v1_0.25"),
    *("vit_base_patch16_224", "vit_base_patch32_224", "vit_large_patch16_224", "vit_huge_patch14_224"),
    *("bert-base", "bert-large", "gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"),
    *("llama-7b", "llama-13b", "llama-2-70b", "llama-3-8b", "mistral-7b"),
)
for _name in _DRAWN:
    _longest = 512 if _name.startswith("bert") else 1024 if _name.startswith("gpt2") else 0
    CATALOGUE[_name] = replace(CATALOGUE[_name], drawn=True, longest=_longest)

# Networks whose recipe is their PyTorch code: mlsys.workloads.torch_models.
_CODED: tuple[tuple[str, str, str, str, dict[str, Any]], ...] = (
    ("mlp", "Perceptron of 128, 256 and 64 units", "exercises", "an exercise of this book", {}),
    ("lenet5", "LeNet-5", "picture", "LeCun et al. 1998, Proc. IEEE, figure 2, in its usual modern form", {}),
    ("small-cnn", "Two convolutions and a classifier", "exercises", "an exercise of this book", {}),
    ("alexnet", "AlexNet", "picture", "Krizhevsky 2014, arXiv:1404.5997 (one tower)", {"image": _RGB224}),
    *((f"vgg{depth}", f"VGG-{depth}", "picture", "Simonyan & Zisserman 2015, arXiv:1409.1556, table 1",
       {"image": _RGB224}) for depth in (11, 13, 16, 19)),
    *((f"squeezenet_{version}", f"SqueezeNet {version}", "picture", "Iandola et al. 2016, arXiv:1602.07360, table 1",
       {"image": _RGB224, "code": f"squeezenet-{version}", "aliases": (f"squeezenet{version.replace('.', '_')}",
                                                                       *also)})
      for version, also in (("1.0", ()), ("1.1", ("squeezenet",)))),
    *((f"densenet{depth}", f"DenseNet-{depth}", "picture", "Huang et al. 2017, CVPR, table 1", {"image": _RGB224})
      for depth in (121, 161, 169, 201)),
    *((f"efficientnet_{size}", f"EfficientNet-{size.capitalize()}", "picture", "Tan & Le 2019, ICML, table 1",
       {"image": (3, side, side), "code": f"efficientnet-{size}"})
      for size, side in {"b0": 224, "b1": 240, "b2": 260, "b3": 300, "b4": 380}.items()),
    ("efficientnet_lite0", "EfficientNet-Lite0", "picture",
     "tensorflow/tpu, models/official/efficientnet/lite/README.md",
     {"image": _RGB224, "code": "efficientnet-lite0",
      "note": "the source prints 407 M multiply-adds; the MACs of its layers are 385 M, as ports count them"}),
    ("kws_ds_cnn", "MLPerf Tiny keyword spotting, DS-CNN", "speech and sensors", _TINY,
     {"image": (1, 49, 10), "code": "ds-cnn", "aliases": ("KWS DS-CNN", "ds_cnn", "kws")}),
    ("ic_resnet8", "MLPerf Tiny image classification, ResNet-8", "picture", _TINY,
     {"image": (3, 32, 32), "code": "resnet8", "aliases": ("IC ResNet-8", "resnet8")}),
    ("ad_autoencoder", "MLPerf Tiny anomaly detection, autoencoder", "speech and sensors", _TINY,
     {"code": "ad-autoencoder", "aliases": ("AD FC autoencoder", "ad", "toyadmos")}),
    ("unet", "U-Net", "segmentation", "Ronneberger et al. 2015, MICCAI, figure 1; padded and normalised",
     {"image": (3, 256, 256), "aliases": ("unet carvana",)}),
    ("detr-r50", "DETR, ResNet-50", "detector", "Carion et al. 2020, ECCV", {"image": (3, 800, 800)}),
    ("lstm-lm", "LSTM language model, 2 layers of 650", "text", "Zaremba et al. 2014, arXiv:1409.2329, section 4.1",
     {"sequence": 35}),
    ("gru-lm", "GRU language model, 2 layers of 650", "text", "as lstm-lm, with the cells of Cho et al. 2014",
     {"sequence": 35}),
)  # fmt: skip
for _name, _title, _family, _source, _rest in _CODED:
    CATALOGUE[_name] = Entry(_name, _title, _family, _source, **{"code": _name, **_rest})
