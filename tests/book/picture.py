"""Make a picture of the built book for the README:

    .venv/bin/python tests/book/picture.py notebooks/wan_keystone.html time-of-a-call docs/page.png

The page's address is that below build/html; it is shown from the section with this id on.
"""

import sys

from browser import browser, visit

from labbook import paths

SIZE = (1280, 860)


def main(page: str, section: str, file: str) -> None:
    with browser() as driver:
        visit(driver, (paths.build_dir() / "html" / page).as_uri(), SIZE)
        if not driver.execute_script("const at = document.getElementById(arguments[0]);"
                                     "at?.scrollIntoView({behavior: 'instant'}); return Boolean(at)", section):
            sys.exit(f"{page} has no section {section}")
        driver.execute_async_script("const done = arguments[0];"
                                    "requestAnimationFrame(() => requestAnimationFrame(() => done()))")
        driver.save_screenshot(file)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
