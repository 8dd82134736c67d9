"""Latent diffusion models: U-Nets, the autoencoder of their images, samplers and the loss to train them."""
