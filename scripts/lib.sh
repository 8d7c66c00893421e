# shellcheck shell=bash
# What every script here shares: where the repository is, how to say things, how to install what is missing.
# Sourced, never run. Never reads stdin, never asks a question.

set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
TARGET_DIR=${CARGO_TARGET_DIR:-$ROOT/target}
case $TARGET_DIR in /*) ;; *) TARGET_DIR=$ROOT/$TARGET_DIR ;; esac
CACHE_DIR=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/cmautobuy

# Where rustup and `cargo install` put programs; a fresh shell often lacks it.
case ":$PATH:" in
*":${HOME:-}/.cargo/bin:"*) ;;
*) export PATH="${HOME:-}/.cargo/bin:$PATH" ;;
esac

say() { printf '\n==> %s\n' "$*" >&2; }
note() { printf '    %s\n' "$*" >&2; }
die() {
    printf '\nerror: %s\n' "$1" >&2
    shift
    local line
    for line in "$@"; do printf '       %s\n' "$line" >&2; done
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif have sudo; then
        sudo -n "$@" || die "'sudo $*' failed" "Run scripts/setup once from an account that may use sudo without a password, or as root."
    else
        die "root is needed for: $*" "Run scripts/setup once as root; later runs need no root."
    fi
}

# True when the Debian package $1 is installed (and not merely known).
is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null || true)" = installed ]; }

# apt_ensure PACKAGE...: installs those that are missing; touches neither the network nor root when none is.
apt_ensure() {
    local missing=() package
    have dpkg-query || {
        note "no dpkg here: skipping Debian packages ($*); install their counterparts yourself"
        return 0
    }
    for package in "$@"; do is_installed "$package" || missing+=("$package"); done
    [ ${#missing[@]} = 0 ] && return 0
    say "installing Debian packages: ${missing[*]}"
    # A second apt may be running (an image being prepared): wait for its lock instead of failing at once.
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=580 update -qq </dev/null >&2
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=580 install -y -qq --no-install-recommends "${missing[@]}" </dev/null >&2
}

# cargo_tool COMMAND: `cargo install`s cargo-COMMAND when it is missing, outside the project's target directory.
cargo_tool() {
    have "cargo-$1" && return 0
    say "installing cargo-$1 (once; some minutes)"
    CARGO_TARGET_DIR=$CACHE_DIR/tools cargo install --locked "cargo-$1" </dev/null >&2
    have "cargo-$1" || die "cargo-$1 was installed but is not on PATH" "Add ~/.cargo/bin to PATH."
}

need_cargo() {
    have cargo || die "no cargo on PATH" "Install Rust 1.95 or newer from https://rustup.rs and run this again."
}

# The pages the window shows; built only when something they are made of is newer than the last build.
build_ui() {
    local ui=$ROOT/ui stamp=$ROOT/ui/node_modules/.pages-built page=$ROOT/ui/dist/index.html
    # A page newer than the stamp is the placeholder `cargo build` makes when there is none.
    if [ -e "$stamp" ] && [ -e "$page" ] && [ ! "$page" -nt "$stamp" ] &&
        [ -z "$(find "$ui" \( -name node_modules -o -name dist \) -prune -o -newer "$stamp" -print -quit)" ]; then
        return 0
    fi
    say "building the pages (ui/)"
    (cd "$ui" && npm run build --silent </dev/null >&2)
    touch "$stamp"
}

# with_display COMMAND...: runs it on a virtual display of its own.
with_display() { xvfb-run -a -s "-screen 0 ${SCREEN:-1280x800x24}" "$@"; }
