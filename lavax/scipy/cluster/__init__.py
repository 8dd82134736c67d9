"""Clusters of vectors: `cluster.vq`."""
from lavax.scipy.cluster import vq

__all__ = ["vq"]
