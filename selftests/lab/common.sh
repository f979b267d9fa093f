# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by the lab's scripts: where things are, how they tell what they do.
# shellcheck disable=SC2034 # used by those that source this

set -euo pipefail
shopt -s inherit_errexit
PATH=$PATH:/usr/sbin:/sbin # which `su` leaves out: chroot, modprobe

repo=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
lab=${RIW_LAB:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/riw}

die() {
	echo "riw lab: $*" >&2
	exit 1
}

# What root makes here first must not keep the owner of the repository from building.
if ! [ -d "$repo/build" ]; then
	mkdir -p "$repo/build"
	chown --reference="$repo" "$repo/build"
fi

# step TITLE COMMAND…: runs COMMAND, its output kept in a log, and shows for how
# long it has been at it. A failure shows its last line if that is from our own
# scripts, which say all in one, else the end of the log.
step() {
	local title=$1 start=$SECONDS status=0 ticker
	local log=$repo/build/log/${title// /-}.log
	shift
	mkdir -p "$repo/build/log"
	progress "$title" 9>&- & # which holds no lock
	ticker=$!
	"$@" >"$log" 2>&1 </dev/null || status=$?
	kill "$ticker" 2>/dev/null || true
	wait "$ticker" 2>/dev/null || true
	[ -t 2 ] && printf '\r\033[K' >&2
	if [ "$status" -ne 0 ]; then
		if tail -n 1 "$log" | grep '^riw' >&2; then
			exit 1
		fi
		tail -n 30 "$log" | sed 's/^/    /' >&2
		die "$title failed after $((SECONDS - start)) s; all of it: $log"
	fi
	echo "  $title: $((SECONDS - start)) s" >&2
}

progress() {
	local begin=$SECONDS pause=15 format='  %s … %d s\n'
	[ -t 2 ] && pause=1 format='\r  %s … %d s'
	# Waits on a pipe that says nothing, since a sleep would outlive this and keep the
	# output open for those who read it to its end. Nor does this outlive the script.
	while ! read -rt "$pause" _; do
		kill -0 $$ 2>/dev/null || return
		# shellcheck disable=SC2059 # the format is one of the two above
		printf "$format" "$1" $((SECONDS - begin)) >&2
	done <> <(:)
}

# host_cargo: whether the host has a cargo that knows the crates' Rust.
host_cargo() {
	local want have
	want=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$repo/rust/iwarp/Cargo.toml")
	command -v cargo >/dev/null && have=$(rustc --version 2>/dev/null | cut -d ' ' -f 2) &&
		printf '%s\n' "$want" "$have" | sort -CV
}

# hash FILE…: one word that changes when any of the files does.
hash() {
	(cd "$repo" && sha256sum "$@" | sha256sum | cut -c 1-16)
}

# What is in the cache is named after what it was made from: what is stale is simply
# not found, and two checkouts that differ there do not disturb each other.
here=selftests/lab
root=$lab/root-$(hash $here/{packages,root})
# What is built in the root depends on what builds it, not on all that is in there.
toolchain=$(cat "$root/toolchain" 2>/dev/null || true)
kernel=$lab/kernel-$toolchain-$(hash $here/kernel tools/{kernel.sh,rust-metadata})
boot=$lab/boot-$toolchain-$(hash $here/{boot,tsc.c,guest/initrd-init})
