#!/bin/sh
# Makes .venv with labbook in it, or brings it up to date; does nothing when it is.
#   lib/bootstrap.sh [test|lab]      test: with what the tests need; lab: with JupyterLab
# Everything comes as wheels whose SHA-256 is in the files of pins, or not at all.
# Its stamp is made of pyproject.toml, the files of pins and its folder. A .venv that is half-made, or was
# made elsewhere and copied, is made again.
set -eu
cd "$(dirname "$0")/.."
venv=.venv stamp=.venv/labbook.stamp making=.venv/labbook.making
extra=${1:-}
[ -z "$extra" ] || [ -e "constraints-$extra.txt" ] || { echo "lib/bootstrap.sh [test|lab]" >&2; exit 2; }

say() { echo "labbook: $*" >&2; }
fail() { say "$*"; exit 1; }

find_python() {
    if [ -n "${PYTHON:-}" ]; then set -- "$PYTHON"; else set -- python3 python3.13 python3.12 python3.11 python3.14; fi
    for name in "$@"; do
        "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$name"; return; }
    done
    fail "no Python 3.11 or newer among ${PYTHON:-python3, python3.11 to python3.14}." \
         "Install one (Debian 12: apt-get install python3 python3-venv) or name it: make PYTHON=/path/to/python3"
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# Debian has the module that makes virtual environments in a separate package.
need_venv_module() {
    "$python" -c 'import ensurepip, venv' 2>/dev/null && return
    package=$("$python" -c 'import sys; print("python3.%d-venv" % sys.version_info[1])')
    command -v apt-get >/dev/null || fail "$python has no venv module; install $package"
    say "installing $package"
    install="apt-get -qq -o DPkg::Lock::Timeout=300 install --no-install-recommends --no-remove $package"
    log=build/bootstrap.log
    as_root env DEBIAN_FRONTEND=noninteractive $install >"$log" 2>&1 ||
        { as_root apt-get -qq update && as_root env DEBIAN_FRONTEND=noninteractive $install; } >>"$log" 2>&1 ||
        { tail -n 20 "$log" >&2
          fail "could not install $package. As root: apt-get update && apt-get install $package"; }
}

place() { (cd "$venv" && pwd -P); }

whole() {    # the virtual environment works, whoever made it, and has no other checkout's labbook
    [ ! -e "$making" ] && { [ -z "${made_in:-}" ] || [ "$made_in" = "$(place)" ]; } &&
        "$venv/bin/python" -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && own_library
}

own_library() {     # a link lends another checkout's on purpose
    [ ! -L "$venv" ] || return 0
    loaded=$("$venv/bin/python" -c 'import os, labbook; print(os.path.realpath(labbook.__file__))' 2>/dev/null) ||
        return 0
    [ "$loaded" = "$(pwd -P)/lib/labbook/__init__.py" ]
}

# uv does not read pip's settings. Who has set an index there gets pip.
own_index() { "$venv/bin/python" -m pip --disable-pip-version-check config list | grep -qE '\.(index-url|extra-index-url|no-index)='; }

by_uv() {
    certificates=/etc/ssl/certs/ca-certificates.crt     # knows a company's own, where there is one
    [ ! -e "$certificates" ] || certs=--system-certs
    "$venv/bin/uv" pip install --quiet ${certs:-} --python "$venv/bin/python" $checked $pins 2>build/uv.log && return
    ! grep -qi "hash mismatch" build/uv.log ||
        { cat build/uv.log >&2; fail "the index gave a file that is not the pinned one; $venv is not made"; }
    say "uv cannot (its message is in build/uv.log); going on with pip"
    return 1
}

install_labbook() {
    pip="$venv/bin/python -m pip --disable-pip-version-check --quiet"
    checked="--require-hashes --no-deps --only-binary :all:"
    pins="-r constraints.txt${extra:+ -r constraints-$extra.txt}"
    refused="pip could not install the pinned packages into $venv; see its message above"
    $pip install $checked -r lib/bootstrap.txt || fail "$refused"
    { ! own_index && by_uv; } || $pip install $checked $pins || fail "$refused"
    $pip install --no-deps --no-build-isolation --no-index -e . || fail "pip could not install labbook into $venv"
}

installed() { "$venv/bin/python" -m pip --disable-pip-version-check list --format freeze | sha256sum; }

mkdir -p build
lock=build/bootstrap.lock
exec 9>>"$lock"
flock -n 9 || {
    say "waiting for process $(cat "$lock"), which is making $venv"
    flock -w "${LABBOOK_BOOTSTRAP_SECONDS:-1800}" 9
} || fail "process $(cat "$lock") has been making $venv for too long; end it, then try again"
echo $$ >"$lock"
key=$(cat pyproject.toml constraints*.txt lib/bootstrap.txt | sha256sum | cut -d' ' -f1)
if [ -e "$stamp" ]; then { read -r made_key made_extra; read -r made_in; } <"$stamp" || true; fi
if whole && [ -e "$stamp" ]; then
    [ "$extra" != lab ] || [ "${made_extra:-}" != test ] || extra=test     # the tests have all of it
    if [ "$made_key" = "$key" ] && { [ "${made_extra:-}" = "$extra" ] || [ -z "$extra" ]; }; then exit 0; fi
    extra=${extra:-${made_extra:-}}
fi

if ! whole; then
    python=$(find_python) || exit 1
    need_venv_module
    [ ! -e "$venv" ] || say "$venv is half-made, was copied, or its Python is gone: making it again"
    rm -rf "$venv"
    mkdir "$venv"
    : >"$making"
    say "making $venv with $("$python" --version)"
    "$python" -m venv "$venv" || fail "$python could not make $venv"
else
    before=$(installed)
fi
: >"$making"
if ! (install_labbook); then    # everything is fetched before anything changes
    [ -z "${before:-}" ] || [ "$before" != "$(installed)" ] || { rm "$making"; say "$venv is as it was"; }
    exit 1
fi
"$venv/bin/python" -c 'import labbook' || fail "labbook does not import from $venv"
# Hosts see all this, but cannot write: there, each start would compile it anew. Not all of it is meant for this Python.
"$venv/bin/python" -m compileall -qq -j 0 -x '/tests?/' "$venv"/lib/python*/site-packages lib/labbook || true
printf '%s %s\n%s\n' "$key" "$extra" "$(place)" >"$stamp.new"
mv "$stamp.new" "$stamp"
rm "$making"
