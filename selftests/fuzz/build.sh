# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Sourced by run_fuzz and pack_corpora, which run the fuzz targets.
#
# The targets need a C++ compiler beside cargo, for libFuzzer, but no nightly compiler: the coverage
# that guides libFuzzer is a pass of stable rustc.
. "$(dirname "${BASH_SOURCE[0]}")/../lab/common.sh"

cd "$repo"

# choose_targets [TARGET…]: sets the array `targets` to these targets, or to all of them.
choose_targets() {
	local all
	mapfile -t all < <(basename -s .rs selftests/fuzz/fuzz_targets/*)
	targets=("$@")
	[ $# -gt 0 ] || targets=("${all[@]}")
	for target in "${targets[@]}"; do
		[ -e "selftests/fuzz/fuzz_targets/$target.rs" ] ||
			die "no fuzz target $target; there are: ${all[*]}"
	done
}

# enter_root COMMAND…: if the host has no C++ compiler, no cargo or one that is too old, runs the
# command in the lab's Debian root and does not return.
enter_root() {
	if ! host_cargo || ! command -v c++ >/dev/null; then
		[ "$repo" != /riw ] || die "the Debian root lacks a cargo that is new enough, or a C++ compiler"
		exec selftests/lab/cargo-root "$@"
	fi
}

# build_targets: builds all targets, and sets `programs` to the folder of their programs.
build_targets() {
	local triple option
	triple=$(rustc -vV | sed -n 's/^host: //p')
	export RUSTFLAGS="-Cpasses=sancov-module"
	for option in level=4 inline-8bit-counters pc-table trace-compares; do
		RUSTFLAGS+=" -Cllvm-args=-sanitizer-coverage-$option"
	done
	export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-build/cargo-fuzz}
	# With --target, cargo does not apply the flags to build scripts.
	cargo build --quiet --release --locked --target "$triple" --manifest-path selftests/fuzz/Cargo.toml
	# shellcheck disable=SC2034 # used by those that source this
	programs=$CARGO_TARGET_DIR/$triple/release
}
