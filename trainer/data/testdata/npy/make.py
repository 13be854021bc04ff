"""Writes the arrays of npy_test.go with NumPy, and the picture of png_test.go with Pillow."""

import numpy as np
from PIL import Image

pixels = (np.arange(3 * 4 * 5, dtype=np.uint32) * 37 % 256).astype(np.uint8).reshape(3, 4, 5)
scaled = pixels / np.float64(255)


def write(name, array, version=None):
    with open(name + ".npy", "wb") as f:
        np.lib.format.write_array(f, array, version=version)


write("u1", pixels)
write("u1-fortran", np.asfortranarray(pixels))
write("f4-v2", scaled.astype("<f4"), (2, 0))
write("f4-big-fortran-v3", np.asfortranarray(scaled.astype(">f4")), (3, 0))
write("f8-rows", scaled.reshape(3, 20))
write("f8-big-rows-fortran", np.asfortranarray(scaled.astype(">f8").reshape(3, 20)))
write("f4-one", scaled[1].astype("<f4"))
write("f4-one-fortran", np.asfortranarray(scaled[1].astype("<f4")))
write("i8", pixels.astype("<i8"))
write("records", np.zeros(3, dtype=[("a", "<f4"), ("b", "<i4")]))

colours = np.stack([pixels[0], pixels[1], pixels[2]], axis=-1)
Image.fromarray(colours).save("colours.png")
Image.fromarray(colours).convert("L").save("grey.png")
