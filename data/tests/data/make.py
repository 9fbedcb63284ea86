"""Makes the files beside it, which our readers are tested on: written by NumPy 2.4.6, Pillow 13.0.0 and pyarrow 26.0.1.

    pip install numpy pillow pyarrow && python make.py
"""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

# Arrays: 0 … 11 as 3 rows of 2 × 2 in every type, and with a hole.
x = np.arange(12).reshape(3, 2, 2)
types = ["f4", "f8", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", ">f4", ">i2"]
np.savez("types.npz", **{t: x.astype(t) for t in types}, b1=x.astype(bool), c8=x.astype("c8"))
hole = x.astype("f4")
hole[1, 0, 1] = np.nan
np.save("hole.npy", hole)
np.save("fortran.npy", np.asfortranarray(hole))
np.savez_compressed("halves.npz", X_train=np.asfortranarray(hole), y_train=np.array([2, 0, 1], "i8"),
                    X_test=hole[:1], y_test=np.array([np.nan]))

# Images: one 2 × 3 picture in every way PNG has, with a pixel that is not there where it has opacity.
grey = np.array([[0, 128, 255], [10, 20, 30]], "u1")
rgb = np.stack([grey, grey // 2, grey // 3], 2)
opacity = np.array([[255, 255, 0], [255, 127, 128]], "u1")
Image.fromarray(grey).save("grey.png")
Image.fromarray(grey.astype("u2") * 257).save("grey16.png")
Image.fromarray(grey > 100).save("bits.png")
Image.fromarray(rgb).save("rgb.png")
Image.fromarray(rgb).quantize(6).save("palette.png")
Image.fromarray(np.dstack([grey, opacity]), "LA").save("grey_holes.png")
Image.fromarray(np.dstack([rgb, opacity]), "RGBA").save("rgb_holes.png")

# A table with every kind of column and a null in each.
pq.write_table(pa.table({
    "age": pa.array([31, None, 47, 52], pa.int64()),
    "height": pa.array([1.5, 1.75, None, 1.625], pa.float64()),
    "colour": pa.array(["red", "blue", "red", None]).dictionary_encode(),
    "smokes": pa.array([True, False, None, True]),
    "species": pa.array(["a", "b", None, "a"]),
}), "table.parquet", compression="zstd")
