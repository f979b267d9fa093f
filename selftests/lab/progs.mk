# SPDX-License-Identifier: GPL-2.0
#
# Compiles the programs of the cases and of the bench, in the Debian root: each
# cases/progs/NAME.c and bench/progs/NAME.c with all of cases/progs/common/*.c becomes
# build/lab/progs/NAME; each cases/progs/preload/NAME.c becomes build/lab/progs/NAME.so.
# They get their names when they are whole: machines that run may use them. One whose
# source is gone goes too, for no case to find it.

self := $(lastword $(MAKEFILE_LIST))
src := /riw/selftests/cases/progs
out := /riw/build/lab/progs
bench := /riw/selftests/bench/progs
programs := $(patsubst $(src)/%.c,$(out)/%,$(wildcard $(src)/*.c)) \
	$(patsubst $(bench)/%.c,$(out)/%,$(wildcard $(bench)/*.c)) \
	$(patsubst $(src)/preload/%.c,$(out)/%.so,$(wildcard $(src)/preload/*.c))
common := $(patsubst $(src)/%.c,$(out)/.obj/%.o,$(wildcard $(src)/common/*.c))

stale := $(filter-out $(programs),$(wildcard $(out)/*))

all: $(programs)
	$(if $(stale),rm -f $(stale))

$(out)/%: $(out)/.obj/%.o $(common) $(self)
	gcc -o $@.new $(filter %.o,$^) -libverbs -lrdmacm -lpthread
	mv $@.new $@

flags := -std=gnu11 -O2 -g -Wall -Wextra -Werror
compile = gcc $(flags) -I$(src) -MMD -MP -c -o $@ $<

$(out)/%.so: $(src)/preload/%.c $(self)
	@mkdir -p $(@D)
	gcc $(flags) -fPIC -shared -o $@.new $<
	mv $@.new $@

$(out)/.obj/%.o: $(src)/%.c $(self)
	@mkdir -p $(@D)
	$(compile)

$(out)/.obj/%.o: $(bench)/%.c $(self)
	@mkdir -p $(@D)
	$(compile)

.SECONDARY:
-include $(wildcard $(out)/.obj/*.d $(out)/.obj/common/*.d)
