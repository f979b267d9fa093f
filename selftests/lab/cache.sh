# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced after common.sh by the scripts that fill and clean the cache.
# shellcheck disable=SC2154 # common.sh sets it

# lock: locks the cache; waits for another holder. The lock is held until this process and the
# children that build for it have ended.
lock() {
	mkdir -p "$lab"
	exec 9>>"$lab/lock"
	flock --nonblock 9 || {
		echo "waiting for another run that prepares the lab" >&2
		flock 9
	}
	# The previous holder may have removed the lab with the lock file.
	[ "$lab/lock" -ef /dev/fd/9 ] || lock
}

# have FOLDER TITLE COMMAND…: if FOLDER is missing, COMMAND fills FOLDER.new, which is then renamed.
# So a folder with its final name is complete.
have() {
	local folder=$1 title=$2
	shift 2
	if ! [ -d "$folder" ]; then
		rm -rf --one-file-system "$folder.new" "$folder"
		mkdir "$folder.new"
		RIW_OUT=$folder.new step "$title" "$@"
		mv -T "$folder.new" "$folder"
	fi
	touch "$folder"
}

# prepared: prepares the lab, and computes $toolchain and $kernel again: they depend on the root.
prepared() {
	"$repo/$here/prepare" >/dev/null
	. "$repo/$here/common.sh"
}

# inputs PATH…: prints a hash of the files, and of those in the folders.
inputs() {
	local files
	mapfile -t files < <(cd "$repo" && find "$@" -type f ! -name '*.md' | LC_ALL=C sort)
	hash "${files[@]}"
}

# built KEY OUTPUT… -- COMMAND…: COMMAND makes the files OUTPUT in the repository. KEY is a command that prints
# what they depend on, as a name. Takes them from the cache if any checkout has built them.
built() {
	local key=$1 name kept outputs=() output
	shift
	while [ "$1" != -- ]; do
		outputs+=("$1")
		shift
	done
	shift
	# Of two builds in a checkout, the second one must not replace what the first one keeps.
	mkdir -p "$repo/$(dirname "${outputs[0]}")"
	exec 7>>"$repo/${outputs[0]}.lock"
	flock 7
	name=$($key)
	kept=$lab/built-$name
	if [ -d "$kept" ]; then
		touch "$kept"
		for output in "${outputs[@]}"; do
			cmp -s "$kept/${output##*/}" "$repo/$output" && continue
			# A process that uses it must not see half of it.
			cp -p "$kept/${output##*/}" "$repo/$output.new"
			mv "$repo/$output.new" "$repo/$output"
		done
		return
	fi
	# Also where `set -e` has no effect.
	"$@" || return
	# The inputs may have changed meanwhile.
	[ "$($key)" = "$name" ] || return 0
	keep "$kept" "${outputs[@]/#/$repo/}"
}

# keep FOLDER FILE…: keeps copies of the files in a new folder of the cache. Fails if they cannot be copied.
keep() {
	local new
	new=$(mktemp -d "$1.XXXXXX")
	if ! cp -p "${@:2}" "$new"; then
		rm -r "$new"
		return 1
	fi
	# Another checkout may have been faster.
	mv -T "$new" "$1" 2>/dev/null || rm -r "$new"
}

# cached [TEST…]: prints the lab's folders in the cache that pass the tests of find.
cached() {
	local folders=("$lab")
	[ ! -d "$lab/uml" ] || folders+=("$lab/uml")
	find "${folders[@]}" -mindepth 1 -maxdepth 1 -regextype posix-extended \
		-regex '.*/(root|kernel|boot|packages|rdma-core|valkey|herd7|big-endian|emulator|built|uml/[a-z]+)-[^/]*[0-9a-f]{16}(\.new|\.gone|\.[[:alnum:]]{6})*' "$@"
}

# remove FOLDER…: renames each folder before it deletes it, so that a partly deleted folder is not
# taken for a complete one. Does not descend into mounts.
remove() {
	local folder
	for folder; do
		rm -rf --one-file-system "$folder.gone"
		[ -e "$folder" ] || continue
		mv -T "$folder" "$folder.gone"
		rm -rf --one-file-system "$folder.gone"
	done
}

# tidy: removes folders that no checkout has used for a week. A failure does not matter to the
# caller; rm prints it.
tidy() {
	local stale
	mapfile -t stale < <(cached ! -newermt '1 week ago')
	remove "${stale[@]}" || true
}
