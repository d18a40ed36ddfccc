#!/bin/sh
# Set up what the project needs: sh scripts/setup.sh [run|dev]
#
#   run   the package and what `make demo` needs
#   dev   also the tools of `make test` and `make lint`
#
# Finds a Python >= 3.12, makes .venv, installs the package into it, and adds missing system
# packages where it may (as root on Debian or Ubuntu). Elsewhere it says exactly what to install.
# PYTHON=/path/to/python chooses the interpreter.
set -eu
cd "$(dirname "$0")/.."
kind=${1:-run}
venv=.venv

say() { printf '%s\n' "setup: $*"; }
fail() {
    printf '%s\n' "setup: $*" >&2
    exit 1
}

good_python() {
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1
}

find_python() {
    for candidate in "${PYTHON:-}" python3.14 python3.13 python3.12 python3 python \
        "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[2-9]*/bin/python "$HOME"/.local/bin/python3.1[2-9] /opt/homebrew/bin/python3; do
        [ -n "$candidate" ] || continue
        path=$(command -v "$candidate" 2>/dev/null) || continue
        if good_python "$path"; then
            printf '%s\n' "$path"
            return 0
        fi
    done
    if command -v uv >/dev/null 2>&1; then
        path=$(uv python find '>=3.12' 2>/dev/null) && good_python "$path" && printf '%s\n' "$path" && return 0
    fi
    return 1
}

can_apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }

# need COMMAND DEBIAN-PACKAGE WHY: install it, or remember to say that it is missing.
missing=
wanted=
need() {
    command -v "$1" >/dev/null 2>&1 && return 0
    wanted="$wanted $2"
    missing="$missing
  $2: $3"
}

# need_module MODULE DEBIAN-PACKAGE WHY: the same for a module of the system's own python3.
need_module() {
    /usr/bin/python3 -c "import $1" >/dev/null 2>&1 && return 0
    wanted="$wanted $2"
    missing="$missing
  $2: $3"
}

if [ ! -x "$venv/bin/python" ] || ! good_python "$venv/bin/python"; then
    python=$(find_python) || fail "no Python >= 3.12 with venv was found.
  Debian 13 / Ubuntu 24.04:  apt-get install python3 python3-venv
  elsewhere:                 install uv (pip install uv) and run: uv python install 3.12
  or name one:               PYTHON=/path/to/python3.12 make demo"
    say "making $venv with $("$python" --version) ($python)"
    rm -rf "$venv"
    "$python" -m venv "$venv"
fi

extra=
[ "$kind" = dev ] && extra='[dev]'
stamp="$venv/.installed-$kind"
if [ ! -e "$stamp" ] || [ -n "$(find pyproject.toml scripts/setup.sh -newer "$stamp")" ]; then
    say "installing the package and its libraries into $venv (a few minutes the first time)"
    "$venv/bin/python" -m pip install --quiet --quiet --disable-pip-version-check --editable ".$extra" ||
        fail "pip could not install the package; its message is above."
    touch "$stamp"
fi

case $(uname -s) in
Linux)
    need bwrap bubblewrap "runs trials without Docker; without it the demo shows recorded trials"
    need npm npm "fetches opencode and bun by exact version; without it the demo shows recorded trials"
    need_module yaml python3-yaml "verifiers of the sandbox compare YAML with it"
    if [ "$kind" = dev ]; then
        need_module pytest python3-pytest "judges the tasks whose verifier is pytest"
        command -v chromium >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1 ||
            need chromium chromium "opens the reports in the browser tests"
    fi
    ;;
*)
    say "the sandbox needs Linux; here the demo shows recorded trials"
    ;;
esac

if [ -n "$wanted" ]; then
    if can_apt; then
        say "installing system packages:$wanted"
        export DEBIAN_FRONTEND=noninteractive
        log=$(mktemp)
        # shellcheck disable=SC2086  # a list of package names
        if ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends $wanted; } >"$log" 2>&1; then
            tail -n 20 "$log" >&2
            fail "apt-get could not install:$wanted"
        fi
        rm -f "$log"
    else
        say "not installed, and this user cannot install them:$missing
  Debian or Ubuntu:  sudo apt-get install$wanted"
    fi
fi
