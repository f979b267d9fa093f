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

# cached [TEST…]: prints the lab's folders in the cache that pass the tests of find.
cached() {
	find "$lab" -mindepth 1 -maxdepth 1 -regextype posix-extended \
		-regex '.*/(root|kernel|boot|packages|rdma-core|valkey)-[^/]*[0-9a-f]{16}(\.new|\.gone)*' "$@"
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
