"""Hugging Face: images of a `datasets.Dataset` as longtail reads them.

Nothing is imported: whatever looks like such a dataset will do. Images are decoded by Pillow, from
`pip install longtail[vision]`.
"""

from longtail.integrations.hf.images import HuggingFaceImages as HuggingFaceImages
from longtail.integrations.hf.images import from_hugging_face as from_hugging_face
