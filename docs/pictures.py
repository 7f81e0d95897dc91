"""Take the README's pictures anew from the built book, in a headless Chromium: `make pictures`.

    .venv/bin/python docs/pictures.py [NAME.png ...]

Each is what a reader sees first who opens the page at a desk. The book is that of `make published`.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SIZE = (1280, 860)
# Name: page below build/html, of which the first screen is shown
PICTURES = {
    "front.png": "book/index.html",
    "study.png": "notebooks/cassandra_elasticity.html",
}


def main(names) -> None:
    sys.path.insert(0, str(ROOT / "tests/book"))
    from browser import browser, visit

    unknown = set(names) - set(PICTURES)
    if unknown:
        sys.exit(f"no picture {', '.join(sorted(unknown))}; there are {', '.join(PICTURES)}")
    with browser() as driver:
        for name in names or PICTURES:
            file = ROOT / "build/html" / PICTURES[name]
            if not file.is_file():
                sys.exit(f"{file} is not there: type make published")
            visit(driver, file.as_uri(), SIZE)
            driver.save_screenshot(str(ROOT / "docs" / name))


if __name__ == "__main__":
    main(sys.argv[1:])
