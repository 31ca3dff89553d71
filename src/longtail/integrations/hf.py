"""Hugging Face: images of a `datasets.Dataset` as longtail reads them.

`from_hugging_face` imports nothing: whatever looks like such a dataset will do. `read_hugging_face`
needs `pip install longtail[hf]`. Images are decoded by Pillow, from `pip install longtail[vision]`.
"""

from longtail.images.hugging_face import HuggingFaceImages as HuggingFaceImages
from longtail.images.hugging_face import from_hugging_face as from_hugging_face
from longtail.images.hugging_face import read_hugging_face as read_hugging_face
