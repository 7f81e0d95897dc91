"""The whole book printed by Chromium."""

import os
import re
import subprocess
import sys


def test_the_book_is_printed_into_one_pdf_that_names_no_path(checkout, book):
    done = subprocess.run([sys.executable, "-m", "labbook.cli", "book", "--pdf"], cwd=checkout, timeout=900,
                          env={**os.environ, "LABBOOK_ROOT": str(checkout), "LABBOOK_PUBLISHED": "1"},
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    printed = (checkout / "build" / "labbook.pdf").read_bytes()
    assert printed.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) > 20
    assert b"file:///" not in printed and str(checkout).encode() not in printed
