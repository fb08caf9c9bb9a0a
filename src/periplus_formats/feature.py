"""The parts that this feature declares."""

from periplus.features import Feature

_READERS = {
    "periplus_formats.pdf_reader:html_of": ("application/pdf", "application/x-pdf"),
    "periplus_formats.rtf:html_of": ("application/rtf", "text/rtf", "application/x-rtf"),
    "periplus_formats.zipped:word": (
        "application/msword",
        "application/vnd.ms-word",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.template",
        "application/vnd.ms-word.document.macroenabled.12",
    ),
    "periplus_formats.zipped:odt": (
        "application/vnd.oasis.opendocument.text",
        "application/vnd.oasis.opendocument.text-template",
    ),
    "periplus_formats.zipped:epub": ("application/epub+zip",),
}
FEATURE = Feature(
    "Reads PDF, Word, OpenDocument, EPUB and RTF files, Markdown and SGML.",
    formats={media_type: place for place, media_types in _READERS.items() for media_type in media_types},
    text_formats={
        "text/markdown": "periplus_formats.markdown:html_of",
        "text/x-markdown": "periplus_formats.markdown:html_of",
        **dict.fromkeys(("text/sgml", "application/sgml", "text/x-sgml"), "periplus_formats.sgml:html_of"),
    },
)
