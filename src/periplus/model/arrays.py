"""Names for the types of NumPy arrays."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Ints = NDArray[np.int64]
Ints16 = NDArray[np.int16]
Ints32 = NDArray[np.int32]
Mask = NDArray[np.bool_]
Unsigned8 = NDArray[np.uint8]
Unsigned16 = NDArray[np.uint16]
Unsigned32 = NDArray[np.uint32]
Unsigned64 = NDArray[np.uint64]
