"""Where arrays are, under the names of jax.sharding: everything is on one device."""
from lavax.tracer.tracing.sharding import SingleDeviceSharding

__all__ = ["Sharding", "SingleDeviceSharding"]

Sharding = SingleDeviceSharding
