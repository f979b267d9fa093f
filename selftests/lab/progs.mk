# SPDX-License-Identifier: GPL-2.0
#
# Compiles the programs of the cases and of the bench, in the Debian root: each
# cases/progs/NAME.c and bench/progs/NAME.c with all of cases/progs/common/*.c becomes
# build/lab/progs/NAME; each cases/progs/preload/NAME.c becomes build/lab/progs/NAME.so.

src := /riw/selftests/cases/progs
out := /riw/build/lab/progs
bench := /riw/selftests/bench/progs
programs := $(patsubst $(src)/%.c,$(out)/%,$(wildcard $(src)/*.c)) \
	$(patsubst $(bench)/%.c,$(out)/%,$(wildcard $(bench)/*.c)) \
	$(patsubst $(src)/preload/%.c,$(out)/%.so,$(wildcard $(src)/preload/*.c))
common := $(patsubst $(src)/%.c,$(out)/.obj/%.o,$(wildcard $(src)/common/*.c))

all: $(programs)

$(out)/%: $(out)/.obj/%.o $(common)
	gcc -o $@ $^ -libverbs -lrdmacm -lpthread

flags := -std=gnu11 -O2 -g -Wall -Wextra -Werror
compile = gcc $(flags) -I$(src) -MMD -c -o $@ $<

$(out)/%.so: $(src)/preload/%.c
	@mkdir -p $(@D)
	gcc $(flags) -fPIC -shared -o $@ $<

$(out)/.obj/%.o: $(src)/%.c
	@mkdir -p $(@D)
	$(compile)

$(out)/.obj/%.o: $(bench)/%.c
	@mkdir -p $(@D)
	$(compile)

.SECONDARY:
-include $(wildcard $(out)/.obj/*.d $(out)/.obj/common/*.d)
