# SPDX-License-Identifier: GPL-2.0
#
# Targets to build, install, try and test riw; `make help` lists them. Kbuild defines the module.

lab := selftests/lab

all:
	@tools/module build

install:
	@tools/module install

uninstall:
	@tools/module uninstall

deb:
	@tools/deb

# The user library for the mode provider=riw; programs need none by default.
provider:
	@tools/provider build

provider-install:
	@tools/provider install

provider-uninstall:
	@tools/provider uninstall

clean:
	rm -rf build

# The other targets need root, but no particular kernel on the host: they run in the lab, a Debian
# root with its own VMs.

demo:
	@selftests/demo

check check-full check-debug soak: export RIW_TRANSPORT := $(or $(TRANSPORT),$(RIW_TRANSPORT))
check: lab
	@selftests/run_tests $(if $(V),-v) $(CASES)

# All cases on the stock kernel, and the slow checks. If one fails, the next still runs.
check-full: lab
	@status=0; RIW_KERNEL=stock selftests/run_tests --full $(if $(V),-v) || status=1; \
		for check in check-install check-options check-deb check-series valgrind litmus loom big-endian mutants; do \
			$(MAKE) --no-print-directory $$check || status=1; \
		done; exit $$status

check-install: lab
	@selftests/check_install

check-options: lab
	@selftests/check_options

check-deb: lab
	@selftests/packages/check_packages

# Other kernels (TARGETS="rt 7.2": some). Needs the network, for their Debian roots.
check-reach:
	@selftests/reach/check_reach $(TARGETS)

# The cases and a soak, on each instrumented User-Mode Linux. RIW_TARGET=rt-debug make soak: on that kernel.
soak = selftests/soak/run_soak --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED))
check-debug: lab
	@status=0; for kernel in debug check; do export RIW_KERNEL=$$kernel; \
		selftests/run_tests --full $(if $(V),-v) $(CASES) || status=1; \
		$(if $(CASES),,$(soak) || status=1;) \
	done; exit $$status

soak: lab
	@$(soak)

# Only a full run on the fast kernel writes to Documentation/performance.
bench := selftests/bench/run_bench $(if $(filter qemu,$(LAB)),--kernel stock) \
	$(if $(BASE),--base $(BASE)) $(if $(ROWS),--only '$(ROWS)') $(if $(ROUNDS),--rounds $(ROUNDS))
bench: lab
	@$(bench) $(if $(LAB)$(BASE)$(ROWS)$(ROUNDS),,--out Documentation/performance)

bench-two: lab
	@$(bench) --two $(if $(LAB)$(BASE)$(ROWS)$(ROUNDS),,--out Documentation/performance)

bench-quick: lab
	@$(bench) --quick

profile: lab
	@selftests/bench/profile $(if $(ROW),--row '$(ROW)') $(if $(DRIVER),--contender $(DRIVER))

scale: lab
	@selftests/bench/scale $(if $(CONNECTIONS),--connections $(CONNECTIONS)) \
		$(if $(PROCESSES),--processes $(PROCESSES)) $(if $(DRIVER),--contender $(DRIVER))

shell:
	@selftests/shell

module:
	@$(lab)/module

host-test:
	@$(lab)/cargo test

# SINCE=revision: only code that has changed since then.
mutants:
	@selftests/mutants/run_mutants $(if $(SINCE),--since $(SINCE))

# The tests of rust/abi and rust/libriw, with checks of each access to memory.
valgrind: lab
	@selftests/provider/check_valgrind

# Which part of rust/iwarp its tests execute.
coverage: lab
	@selftests/measure_coverage

# Which part of the driver the cases execute (CASES="rping_veth mr_*": those; JOBS=2: VMs at a time).
coverage-driver: lab
	@selftests/measure_driver_coverage $(if $(JOBS),-j $(JOBS)) $(CASES)

# The order of accesses to memory, in models (TEST="doorbell runner": some).
litmus: lab
	@selftests/litmus/run_litmus $(TEST)

# The lock-free code itself, with loom's atomics.
loom: lab
	@selftests/loom/check_loom

# The tests of rust/abi, rust/iwarp and rust/libriw on an emulated s390x.
big-endian: lab
	@selftests/big_endian/check_big_endian

# TARGET=name: one target; SECONDS=n or RUNS=n: length of each target's run (default: 30 s).
fuzz:
	@selftests/fuzz/run_fuzz $(if $(RUNS),-r $(RUNS),-s $(or $(SECONDS),30)) $(TARGET)

clippy: lab
	@selftests/check_clippy

fmt: lab
	@$(lab)/chroot sh -c 'find rust -name "*.rs" | xargs rustfmt --edition 2021'

# rustdoc processes only files that kbuild compiles: remove the old objects, so that it compiles all files.
doc:
	@rm -rf build/doc build/doc-objects
	@OUT=build/doc-objects $(lab)/module RUSTC=/riw/tools/rustc-doc
	@echo 'See build/doc/riw/index.html'

# riw as patches for the source of a kernel.
series:
	$(if $(KERNEL),,$(error riw: no KERNEL: give KERNEL=FOLDER, the source of Linux))
	@series/write_series $(KERNEL) $(or $(OUT),build/series)

# The texts of its patches, and the kernel to which it leads, which has riw built in: some cases there.
check-series: lab
	@status=0; series/check_in_lab || status=1; \
		RIW_KERNEL=series selftests/run_tests $(if $(V),-v) \
			$(or $(CASES),kunit rping_veth rping_one_device) || status=1; exit $$status

# The driver builds with each patch. FIRST=NUMBER: from that patch on.
check-patches: lab
	@series/check_in_lab --each $(FIRST)

lab:
	@$(lab)/prepare >/dev/null

lab-clean:
	@$(lab)/clean

help:
	@echo 'For a machine with Debian 13 and the kernel from trixie-backports, or with Debian 14:'
	@echo '  make             build riw.ko (KDIR=… for another kernel, RUSTC=… with another rustc)'
	@echo '  make install     install riw.ko for modprobe (as root); does not sign it for Secure Boot'
	@echo '  make uninstall   remove the installed riw.ko (as root)'
	@echo '  make provider    build the user library for the mode provider=riw'
	@echo '  make provider-install'
	@echo '                   install that library for libibverbs (as root)'
	@echo '  make provider-uninstall'
	@echo '                   remove the installed library (as root)'
	@echo '  make clean       remove build/'
	@echo 'For any machine with Debian 13 or 14:'
	@echo '  make deb         build the packages riw-dkms and libibverbs-provider-riw, in build/deb'
	@echo 'For any Debian machine, as root; runs in VMs with that kernel:'
	@echo '  make demo        try riw: rping and perftest between two namespaces'
	@echo '  make shell       a shell in a VM, with riw0 and riw1'
	@echo '  make check       run all tests (CASES="rping_veth mr_*": some; V=1: verbose; TRANSPORT=sctp)'
	@echo '  make check-full  all cases on the stock kernel, also slow ones, check-install, check-options, check-deb, check-series, valgrind, litmus, loom, big-endian, mutants'
	@echo '  make check-install  check what make install, provider-install and their opposites do'
	@echo '  make check-options  build riw.ko without SCTP, without TLS, and without both'
	@echo '  make check-deb   build the packages; install, upgrade, boot, purge them in clean roots'
	@echo '  make check-reach build for other kernels and compilers, and try each in a VM (TARGETS="rt 7.2")'
	@echo '  make check-debug run the cases and a soak on the instrumented kernels debug and check'
	@echo '  make soak        random traffic, kills and removals (MINUTES=10, SEED=1, TRANSPORT=sctp; RIW_KERNEL=check, stock)'
	@echo '  make bench       measure riw, siw and TCP (bench-quick: under 5 minutes)'
	@echo '  make bench-two   the same between two machines: bandwidth, and the CPU time of each end'
	@echo '  make profile     profile a row of the bench (ROW="veth1500 bandwidth write 64 KiB"; DRIVER=siw)'
	@echo '  make scale       open many idle connections (CONNECTIONS=10000, PROCESSES=10; DRIVER=siw)'
	@echo '  make module      build riw.ko for that kernel'
	@echo '  make host-test   run the tests of rust/abi, rust/iwarp and rust/libriw, without a VM'
	@echo '  make valgrind    run the tests of rust/abi and rust/libriw under valgrind; needs cargo and valgrind'
	@echo '  make mutants     check that the tests of rust/iwarp notice changes of it (SINCE=HEAD~3);'
	@echo '                   needs cargo and Rust 1.88'
	@echo '  make coverage    show how much of rust/iwarp its tests execute'
	@echo '  make coverage-driver  show how much of the driver the cases execute (CASES="rping_veth mr_*": those)'
	@echo '  make fuzz        fuzz rust/iwarp (TARGET=pair: one target; SECONDS=600 or RUNS=1000000)'
	@echo '  make litmus      check the order of accesses to shared memory with herd7 (TEST=doorbell: one test)'
	@echo '  make loom        run the lock-free code of riw and libriw in all interleavings of its threads'
	@echo '  make big-endian  run the tests of rust/abi, rust/iwarp and rust/libriw on an emulated s390x'
	@echo '  make clippy      lint the crates in rust/'
	@echo '  make fmt         format the code in rust/'
	@echo '  make doc         build the rustdoc of all crates, in build/doc'
	@echo '  make series      write riw as patches for the source of a kernel (KERNEL=FOLDER; OUT=build/series)'
	@echo '  make check-series   check the patches, and boot a User-Mode Linux with riw built in (CASES="rping_veth kunit")'
	@echo '  make check-patches  build the driver with each patch of the series (FIRST=90: from that one on)'
	@echo '  make lab         build the Debian root and the kernel files of the lab'
	@echo '  make lab-clean   remove the lab'

.PHONY: all install uninstall provider provider-install provider-uninstall deb clean demo check check-full check-install check-options check-deb check-reach check-debug check-series check-patches soak bench bench-two bench-quick profile scale shell module host-test coverage coverage-driver valgrind mutants litmus loom big-endian fuzz clippy fmt doc series lab lab-clean help
