# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced, beside common.sh, by the scripts that make and remove what is in the cache.
# shellcheck disable=SC2154 # common.sh sets it

# lock: waits until nobody else is at it. Held until this process has ended, and those
# that make something for it.
lock() {
	mkdir -p "$lab"
	exec 9>>"$lab/lock"
	flock --nonblock 9 || {
		echo "waiting for another run that prepares the lab" >&2
		flock 9
	}
	# Whoever had it may have removed the lab.
	[ "$lab/lock" -ef /dev/fd/9 ] || lock
}

# have FOLDER TITLE COMMAND…: if FOLDER is missing, COMMAND makes FOLDER.new, which then
# gets its final name: what has that is complete.
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

# cached [TEST…]: what is in the cache, those for which find's tests hold.
cached() {
	find "$lab" -mindepth 1 -maxdepth 1 -regextype posix-extended \
		-regex '.*/(root|kernel|boot)-[^/]*[0-9a-f]{16}(\.new|\.gone)*' "$@"
}

# remove FOLDER…: its name goes first, since the rest of one that is half gone must not
# be taken for it. What may be mounted in there stays.
remove() {
	local folder
	for folder; do
		rm -rf --one-file-system "$folder.gone"
		[ -e "$folder" ] || continue
		mv -T "$folder" "$folder.gone"
		rm -rf --one-file-system "$folder.gone"
	done
}

# tidy: what no checkout has used for a week is stale. Where something is in the way of its
# end, rm says so, and nobody has to wait for it.
tidy() {
	local stale
	mapfile -t stale < <(cached ! -newermt '1 week ago')
	remove "${stale[@]}" || true
}
