# make book      the quick profile of every notebook, and the book      (STUDIES="a b", PROFILE=full)
# make test      all tests                                             (PYTEST="-k delay -n 0")
# make published the book from data/published/: no lab, no root
# make lab       JupyterLab on this machine, with the notebooks       (JUPYTER="--no-browser --port 9000")
# make pdf       the published book as one PDF, build/labbook.pdf: needs Chromium
# make pictures  docs/*.png anew, from the published book: needs Chromium
# make benchmarks labbook beside the others: an hour, idle            (BENCHMARKS="lab_up ceph_up")
# make clean     take away .venv and build; records and downloads stay
STUDIES ?=
PROFILE ?= quick
PYTEST ?=
BENCHMARKS ?=
JUPYTER ?=
PYTHON ?=
LABBOOK := .venv/bin/labbook

export PYTHON
# Where Python is told to write no bytecode, each of many starts would compile what it imports anew.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help book test published pdf lab pictures benchmarks clean
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

help:
	@sed -n '1,8s/^# //p' $(firstword $(MAKEFILE_LIST))

# A study that failed has its error on its page, so the book is built all the same; make fails at the end.
book:
	@lib/bootstrap.sh
	@$(LABBOOK) install $(STUDIES) --profile $(PROFILE)
	@status=0; $(LABBOOK) run $(STUDIES) --profile $(PROFILE) || status=$$?; \
	$(LABBOOK) book && exit $$status

published:
	@lib/bootstrap.sh
	@$(LABBOOK) book --published

pdf:
	@lib/bootstrap.sh
	@$(LABBOOK) book --published --pdf

lab:
	@lib/bootstrap.sh lab
	@PATH="$(CURDIR)/.venv/bin:$$PATH" JUPYTER_CONFIG_PATH="$(CURDIR)/lib/jupyter" exec jupyter lab $(JUPYTER)

pictures:
	@lib/bootstrap.sh test
	@$(LABBOOK) book --published
	@.venv/bin/python docs/pictures.py

# Here a lab test that cannot run is a failure, not a skip.
test:
	@lib/bootstrap.sh test
	@$(LABBOOK) install --tests
	@LABBOOK_REQUIRE_LAB=1 .venv/bin/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder tests/unit tests/book tests/lab $(PYTEST)

benchmarks:
	@lib/bootstrap.sh
	@$(LABBOOK) install --benchmarks
	@.venv/bin/python benchmarks/every.py $(BENCHMARKS)

clean:
	rm -rf .venv build
