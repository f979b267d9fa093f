# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by the lab's scripts: where things are, how they tell what they do.
# shellcheck disable=SC2034 # used by those that source this

set -euo pipefail

repo=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
lab=${RIW_LAB:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/riw}

die() {
	echo "riw lab: $*" >&2
	exit 1
}

# step TITLE COMMAND…: runs COMMAND, its output kept in a log, and shows for how
# long it has been at it. A failure shows the end of the log.
step() {
	local title=$1 start=$SECONDS status=0 ticker
	local log=$lab/log/${title// /-}.log
	shift
	mkdir -p "$lab/log"
	progress "$title" &
	ticker=$!
	"$@" >"$log" 2>&1 </dev/null || status=$?
	kill "$ticker"
	wait "$ticker" 2>/dev/null || true
	[ -t 2 ] && printf '\r\033[K' >&2
	if [ "$status" -ne 0 ]; then
		tail -n 15 "$log" | sed 's/^/    /' >&2
		die "$title failed after $((SECONDS - start)) s; all of it: $log"
	fi
	echo "  $title: $((SECONDS - start)) s" >&2
}

progress() {
	local begin=$SECONDS pause=15 format='  %s … %d s\n'
	if [ -t 2 ]; then
		pause=1 format='\r  %s … %d s'
	fi
	while true; do
		# shellcheck disable=SC2059 # the format is one of the two above
		printf "$format" "$1" $((SECONDS - begin)) >&2
		sleep "$pause"
	done
}

# hash FILE…: one word that changes when any of the files does.
hash() {
	(cd "$repo" && sha256sum "$@" | sha256sum | cut -c 1-16)
}

# fresh NAME HASH: whether $lab/NAME was made from inputs of that hash.
fresh() {
	[ "$(cat "$lab/$1/.stamp" 2>/dev/null)" = "$2" ]
}

# build_module: has the module under test ready for the lab's kernel. RIW_DRIVER=siw
# puts siw in its place, to compare the two.
build_module() {
	"$repo/selftests/lab/prepare"
	[ "${RIW_DRIVER:-riw}" != riw ] || step "riw.ko" "$repo/selftests/lab/module"
}
