"""Write schema/*.schema.json from the Structs in thermite/schema; a test holds them equal.

Run it from the top folder: PYTHONPATH=. python tools/make_schemas.py
"""

import json
from pathlib import Path

from thermite.schema.json_schema import SCHEMAS

FOLDER = Path(__file__).parents[1] / "schema"

for name, make in SCHEMAS.items():
    text = json.dumps(make(), indent=2, ensure_ascii=False)
    (FOLDER / f"{name}.schema.json").write_text(f"{text}\n", encoding="utf-8")
    print(f"schema/{name}.schema.json")
