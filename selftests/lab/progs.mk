# SPDX-License-Identifier: GPL-2.0
#
# Compiles the programs of the cases and of the bench, in the Debian root. Each cases/progs/NAME.c
# and bench/progs/NAME.c, linked with all of cases/progs/common/*.c, becomes build/lab/progs/NAME.
# If there is a folder cases/progs/NAME, its *.c are parts of NAME, too. Those of a folder cases/progs/WORD
# are parts of all programs WORD_*.
# Each cases/progs/preload/NAME.c becomes build/lab/progs/NAME.so.
# Each cases/progs/mpi/NAME.c becomes build/lab/progs/NAME, too, compiled for Open MPI.
#
# A program gets its name when it is complete, because running machines may use it. A program
# without a source is removed, so that no case finds it.

self := $(lastword $(MAKEFILE_LIST))
src := /riw/selftests/cases/progs
out := /riw/build/lab/progs
bench := /riw/selftests/bench/progs
programs := $(patsubst $(src)/%.c,$(out)/%,$(wildcard $(src)/*.c)) \
	$(patsubst $(bench)/%.c,$(out)/%,$(wildcard $(bench)/*.c)) \
	$(patsubst $(src)/preload/%.c,$(out)/%.so,$(wildcard $(src)/preload/*.c)) \
	$(patsubst $(src)/mpi/%.c,$(out)/%,$(wildcard $(src)/mpi/*.c))
# These have instructions of x86: for User-Mode Linux, and for the bench.
ifneq ($(shell dpkg --print-architecture),amd64)
programs := $(filter-out $(out)/tsc_clock.so $(out)/bench_machine,$(programs))
endif
common := $(patsubst $(src)/%.c,$(out)/.obj/%.o,$(wildcard $(src)/common/*.c))
first_word = $(firstword $(subst _, ,$(notdir $(1))))
parts = $(patsubst $(src)/%.c,$(out)/.obj/%.o,$(wildcard $(src)/$(notdir $(1))/*.c $(src)/$(call first_word,$(1))/*.c))

stale := $(filter-out $(programs),$(wildcard $(out)/*))

all: $(programs)
	$(if $(stale),rm -f $(stale))

$(foreach program,$(patsubst $(src)/%.c,$(out)/%,$(wildcard $(src)/*.c)), \
	$(eval $(program): $(call parts,$(program))))

$(out)/fabric_rma: libraries := -lfabric

$(out)/%: $(out)/.obj/%.o $(common) $(self)
	gcc -o $@.new $(filter %.o,$^) $(libraries) -libverbs -lrdmacm -lpthread
	mv $@.new $@

flags := -std=gnu11 -O2 -g -Wall -Wextra -Werror
compile = gcc $(flags) -I$(src) -MMD -MP -c -o $@ $<

$(out)/%.so: $(src)/preload/%.c $(self)
	@mkdir -p $(@D)
	gcc $(flags) -fPIC -shared -o $@.new $<
	mv $@.new $@

# No verbs: an MPI program uses what its library uses.
mpi_parts := $(out)/.obj/common/random.o $(out)/.obj/common/tap.o
$(patsubst $(src)/mpi/%.c,$(out)/%,$(wildcard $(src)/mpi/*.c)): $(out)/%: $(src)/mpi/%.c \
		$(wildcard $(src)/common/*.h) $(mpi_parts) $(self)
	mpicc.openmpi $(flags) -I$(src) -o $@.new $(filter %.c %.o,$^)
	mv $@.new $@

$(out)/.obj/%.o: $(src)/%.c $(self)
	@mkdir -p $(@D)
	$(compile)

$(out)/.obj/%.o: $(bench)/%.c $(self)
	@mkdir -p $(@D)
	$(compile)

.SECONDARY:
-include $(wildcard $(out)/.obj/*.d $(out)/.obj/*/*.d)
