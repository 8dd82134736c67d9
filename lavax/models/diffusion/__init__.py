"""Latent diffusion models: U-Nets, the autoencoder of their images, samplers, text to images, and the loss to train."""
from lavax.models.diffusion.autoencoder import STABLE_DIFFUSION_AUTOENCODER, Autoencoder, AutoencoderConfig
from lavax.models.diffusion.pipeline import TextToImage
from lavax.models.diffusion.pipeline_folder import load_pipeline, save_pipeline
from lavax.models.diffusion.pipeline_xl import TextToImageXL
from lavax.models.diffusion.samplers import Sampler, ddim, ddpm, euler, euler_ancestral
from lavax.models.diffusion.sampling import guided, sampling, with_context
from lavax.models.diffusion.schedule import NoiseSchedule
from lavax.models.diffusion.small_unet import SMALL_TRAINING_UNET, SmallUNet, SmallUNetConfig
from lavax.models.diffusion.training import loss
from lavax.models.diffusion.unet import UNet
from lavax.models.diffusion.unet_config import STABLE_DIFFUSION_1_5, STABLE_DIFFUSION_XL, UNetConfig

__all__ = [
    "SMALL_TRAINING_UNET",
    "STABLE_DIFFUSION_1_5",
    "STABLE_DIFFUSION_AUTOENCODER",
    "STABLE_DIFFUSION_XL",
    "Autoencoder",
    "AutoencoderConfig",
    "NoiseSchedule",
    "Sampler",
    "SmallUNet",
    "SmallUNetConfig",
    "TextToImage",
    "TextToImageXL",
    "UNet",
    "UNetConfig",
    "ddim",
    "ddpm",
    "euler",
    "euler_ancestral",
    "guided",
    "load_pipeline",
    "loss",
    "sampling",
    "save_pipeline",
    "with_context",
]
