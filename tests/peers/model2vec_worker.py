"""Runs inside model2vec's environment: encodes the texts of a JSON file with the folder that it names."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
from model2vec import StaticModel

job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
np.save(job["output"], StaticModel.from_pretrained(job["folder"]).encode(job["texts"]))
