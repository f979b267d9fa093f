# SPDX-License-Identifier: GPL-2.0
#
# What one calls to build, install, try and test riw; `make help` lists it. How the
# module is put together is in Kbuild.

lab := selftests/lab

all:
	@tools/module build

install:
	@tools/module install

clean:
	rm -rf build

# The rest needs no fitting kernel, only root: it works in the lab, a Debian root and
# VMs of its own.

demo:
	@selftests/demo

check: lab
	@selftests/run_tests $(if $(V),-v) $(CASES)

# `check` and the slow `mutants`; both run, even if the first fails.
check-full:
	@status=0; for what in check mutants; do $(MAKE) --no-print-directory $$what || status=1; done; \
		exit $$status

# The same and more on User-Mode Linuxes that watch themselves.
soak = selftests/soak/run_soak --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED))
check-debug: lab
	@status=0; for kernel in debug kasan; do export RIW_KERNEL=$$kernel; \
		selftests/run_tests $(if $(V),-v) $(CASES) || status=1; \
		$(if $(CASES),,$(soak) || status=1;) \
	done; exit $$status

soak: lab
	@$(soak)

# Figures of record are those of a full run on the fast kernel.
bench := selftests/bench/run_bench $(if $(filter qemu,$(LAB)),--kernel stock) \
	$(if $(BASE),--base $(BASE)) $(if $(ROWS),--only '$(ROWS)') $(if $(ROUNDS),--rounds $(ROUNDS))
bench: lab
	@$(bench) $(if $(LAB)$(BASE)$(ROWS)$(ROUNDS),,--out Documentation/performance)

bench-quick: lab
	@$(bench) --quick

profile: lab
	@selftests/bench/profile $(if $(ROW),--row '$(ROW)') $(if $(DRIVER),--contender $(DRIVER))

shell:
	@selftests/shell

module:
	@$(lab)/module

host-test:
	@$(lab)/cargo test

# SINCE=revision for what has changed since then only.
mutants:
	@selftests/mutants/run_mutants $(if $(SINCE),--since $(SINCE))

# TARGET=name for one target, SECONDS=n or RUNS=n each (30 s); see selftests/fuzz/run_fuzz.
fuzz:
	@selftests/fuzz/run_fuzz $(if $(RUNS),-r $(RUNS),-s $(or $(SECONDS),30)) $(TARGET)

# What is linted and documented is what is compiled, so nothing may be fresh.
clippy:
	@rm -rf build/clippy
	@OUT=build/clippy $(lab)/module CLIPPY=1 CLIPPY_CONF_DIR=/riw KRUSTFLAGS=-Dwarnings
	@$(lab)/cargo clippy --all-targets -- -D warnings

fmt: lab
	@$(lab)/chroot sh -c 'find rust -name "*.rs" | xargs rustfmt --edition 2021'

doc:
	@rm -rf build/doc build/doc-objects
	@OUT=build/doc-objects $(lab)/module RUSTC=/riw/tools/rustc-doc
	@echo 'See build/doc/riw/index.html'

lab:
	@$(lab)/prepare >/dev/null

lab-clean:
	@$(lab)/clean

help:
	@echo 'For a Debian 13 machine that runs the kernel from trixie-backports:'
	@echo '  make             build riw.ko (KDIR=… for another kernel)'
	@echo '  make install     install it where modprobe finds it (as root)'
	@echo '  make clean       remove all that was built here'
	@echo 'For any Debian machine, as root; in VMs with that kernel:'
	@echo '  make demo        try riw: rping and perftest between two namespaces'
	@echo '  make shell       a shell there, riw0 and riw1 ready'
	@echo '  make check       all tests (CASES="rping_veth mr_*" for some, V=1 for more)'
	@echo '  make check-full  make check and make mutants'
	@echo '  make check-debug the same on two kernels that watch themselves, and a soak on each'
	@echo '  make soak        random traffic, kills and removals (MINUTES=10, SEED=1; RIW_KERNEL=kasan)'
	@echo '  make bench       riw, siw and TCP measured (bench-quick: under 5 minutes)'
	@echo '  make profile     where the time goes (ROW="veth1500 bandwidth write 64 KiB")'
	@echo '  make module      build riw.ko for that kernel'
	@echo '  make host-test   the tests of rust/iwarp, without VM'
	@echo '  make mutants     whether the tests of rust/iwarp notice changes of it (SINCE=HEAD~3)'
	@echo '  make fuzz        fuzz rust/iwarp (TARGET=pair for one, SECONDS=600 or RUNS=1000000)'
	@echo '  make clippy      lints of the crates in rust'
	@echo '  make fmt         format the code in rust'
	@echo '  make doc         rustdoc of all crates, in build/doc'
	@echo '  make lab         make the Debian root and the kernel that these use'
	@echo '  make lab-clean   remove them'

.PHONY: all install clean demo check check-full check-debug soak bench bench-quick profile shell module host-test mutants fuzz clippy fmt doc lab lab-clean help
