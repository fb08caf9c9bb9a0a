"""The parts that this feature declares."""

from periplus.features import Feature

FEATURE = Feature(
    "Reads pages as a browser shows them.", services={"rendering": "periplus_browser.rendered:PageRendering"}
)
