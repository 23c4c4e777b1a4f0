# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# make, make check, make demo: see README.md. `make help` lists the targets.
#
# Everything lands in $(BUILD). Each folder of user/ becomes an archive of its own, linked in the
# order of the layering, so that an include in the wrong direction does not link in the unit tests.

BUILD	?= build
# make V=1 shows the commands
Q	:= $(if $(V),,@)
PREFIX	?= /usr/local
DESTDIR	?=
CC	?= gcc
CXX	?= g++
CLANG	?= clang
BPFTOOL	?= $(firstword $(wildcard /usr/local/sbin/bpftool /usr/sbin/bpftool) bpftool)
VERSION	:= 0.1.0

WARN	:= -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wformat=2
CFLAGS	?= -O2 -g
CPPFLAGS += -D_GNU_SOURCE -DQBPF_VERSION=\"$(VERSION)\" -I. -Iinclude -Iuser -I$(BUILD)/gen -I$(BUILD)/skel
BASE_CFLAGS = -std=gnu11 $(WARN) -fno-omit-frame-pointer $(CFLAGS)
LDLIBS_ELF  = -lelf -ldw -llzma -lcapstone -liberty
LDLIBS_FILE = -lzstd -lz
LDLIBS_OUT  = -lprotobuf-c -ldeflate -ljansson -lncursesw -ltinfo -lm
LDLIBS_BPF  = -lbpf -lelf -lz
LDLIBS_ALL  = $(LDLIBS_BPF) $(LDLIBS_ELF) $(LDLIBS_FILE) $(LDLIBS_OUT) -lpthread

AREAS	:= elf plan file model out
src	 = $(wildcard user/$(1)/*.c)
obj	 = $(patsubst %.c,$(BUILD)/%.o,$(call src,$(1)))
san_obj	 = $(patsubst %.c,$(BUILD)/san/%.o,$(call src,$(1)))
SAN	:= -fsanitize=address,undefined -fno-sanitize-recover=undefined

# Every bpf/*.bpf.c is linked into one object with one skeleton, qbpf.skel.h, so that they share maps;
# bpf/feature_*.bpf.c are the kernel-feature probes, each an object of its own.
FEATURE_SRC := $(wildcard bpf/feature_*.bpf.c)
# maps.bpf.c comes first: libbpf 1.4's linker loses a map whose definition follows its uses.
BPF_SRC	 := bpf/maps.bpf.c $(filter-out $(FEATURE_SRC) bpf/maps.bpf.c,$(wildcard bpf/*.bpf.c))
SKELS	 := $(BUILD)/skel/qbpf.skel.h $(patsubst bpf/%.bpf.c,$(BUILD)/skel/%.skel.h,$(FEATURE_SRC))

.PHONY: all
all: $(BUILD)/qbpf agent

.DELETE_ON_ERROR:
.SECONDARY:
.SECONDEXPANSION:

# --- BPF: vmlinux.h from the running kernel (or VMLINUX_H=...), object, skeleton -----------------

$(BUILD)/gen/vmlinux.h: $(VMLINUX_H)
	@mkdir -p $(@D)
ifdef VMLINUX_H
	cp $(VMLINUX_H) $@
else
	@echo "  GEN   $@"
	$(Q)$(BPFTOOL) btf dump file /sys/kernel/btf/vmlinux format c > $@
endif

# -mcpu=v3: atomics that return a value, and 32-bit jumps.
$(BUILD)/bpf/%.bpf.o: bpf/%.bpf.c $(BUILD)/gen/vmlinux.h
	@mkdir -p $(@D)
	@echo "  BPF   $@"
	$(Q)$(CLANG) --target=bpf -mcpu=v3 -D__TARGET_ARCH_x86 -g -O2 -Wall -Wno-unknown-attributes \
		-Iinclude -Ibpf -I$(BUILD)/gen -MMD -MP -MF $(@:.o=.d) -MT $@ -c $< -o $@

$(BUILD)/bpf/qbpf.o: $(patsubst bpf/%.c,$(BUILD)/bpf/%.o,$(BPF_SRC))
	@echo "  GEN   $@"
	$(Q)$(BPFTOOL) gen object $@ $^

$(BUILD)/skel/qbpf.skel.h: $(BUILD)/bpf/qbpf.o
	@mkdir -p $(@D)
	@echo "  GEN   $@"
	$(Q)$(BPFTOOL) gen skeleton $< name qbpf_bpf > $@

$(BUILD)/skel/%.skel.h: $(BUILD)/bpf/%.bpf.o
	@mkdir -p $(@D)
	@echo "  GEN   $@"
	$(Q)$(BPFTOOL) gen skeleton $< name $(subst -,_,$*)_bpf > $@

# --- user space ---------------------------------------------------------------------------------

$(BUILD)/user/%.o: user/%.c | $(SKELS)
	@mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(CC) $(CPPFLAGS) $(BASE_CFLAGS) -MMD -MP -c $< -o $@

# Objects of generated sources, by the area that they belong to.
gen_obj_out := gen/perfetto.pb-c.o

define archive_rule
$(BUILD)/lib$(1).a: $(call obj,$(1)) $(addprefix $(BUILD)/,$(gen_obj_$(1)))
	@rm -f $$@
	@echo "  AR    $$@"
	$(Q)$(AR) rcs $$@ $$^
$(BUILD)/san/lib$(1).a: $(call san_obj,$(1)) $(addprefix $(BUILD)/san/,$(gen_obj_$(1)))
	@rm -f $$@
	@echo "  AR    $$@"
	$(Q)$(AR) rcs $$@ $$^
endef
$(foreach a,$(AREAS) trace cmd,$(eval $(call archive_rule,$(a))))

# The pure areas never see a skeleton, so they build without clang or bpftool.
$(foreach a,$(AREAS),$(call obj,$(a))): $(BUILD)/user/%.o: user/%.c
	@mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(CC) $(CPPFLAGS) $(BASE_CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/san/user/%.o: user/%.c
	@mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(CC) $(CPPFLAGS) $(BASE_CFLAGS) -O1 $(SAN) -MMD -MP -c $< -o $@

# The page of `report --html`: its parts are put together, then become part of html.o (.incbin).
HTML_PARTS := $(wildcard user/out/html/*)
$(BUILD)/gen/html/head.html: $(HTML_PARTS)
	@echo "  GEN   $@"
	$(Q)user/out/html/assemble.sh $(@D)

$(BUILD)/user/out/html.o $(BUILD)/san/user/out/html.o: $(BUILD)/gen/html/head.html

# Perfetto's trace format: messages by protobuf-c.
$(BUILD)/gen/perfetto.pb-c.c: user/out/perfetto.proto
	@mkdir -p $(@D)
	@echo "  GEN   $@"
	$(Q)protoc-c --proto_path=$(<D) --c_out=$(@D) $<

$(BUILD)/gen/perfetto.pb-c.h: $(BUILD)/gen/perfetto.pb-c.c ;

$(BUILD)/gen/%.o: $(BUILD)/gen/%.c
	@echo "  CC    $@"
	$(Q)$(CC) $(CPPFLAGS) -std=gnu11 $(CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/san/gen/%.o: $(BUILD)/gen/%.c
	@mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(CC) $(CPPFLAGS) -std=gnu11 $(CFLAGS) -O1 $(SAN) -MMD -MP -c $< -o $@

$(foreach d,$(BUILD) $(BUILD)/san,$(patsubst %.c,$(d)/%.o,$(wildcard user/out/perfetto*.c))): | $(BUILD)/gen/perfetto.pb-c.h

LIBS	:= $(foreach a,cmd trace out model file plan elf,$(BUILD)/lib$(a).a)
$(BUILD)/qbpf: $(BUILD)/user/main.o $(LIBS)
	@echo "  CC    $@"
	$(Q)$(CC) $(LDFLAGS) $< $(LIBS) $(LDLIBS_ALL) -o $@

include probes/cupti/rules.mk

# --- tests --------------------------------------------------------------------------------------

# tests/unit/t_AREA_*.c links AREA and what lies below it, nothing else.
deps_elf   := elf
deps_plan  := plan elf
deps_file  := file
deps_model := model file plan elf
deps_out   := out model file plan elf
deps_probe :=
libs_elf   := $(LDLIBS_ELF)
libs_plan  := $(LDLIBS_ELF) -lm
libs_file  := $(LDLIBS_FILE) -lpthread
libs_model := $(LDLIBS_ELF) -ljansson -lm $(LDLIBS_FILE) -lpthread
libs_out   := $(LDLIBS_ELF) $(LDLIBS_OUT) $(LDLIBS_FILE) -lpthread
libs_probe :=

UNIT_SRC := $(wildcard tests/unit/t_*.c)
UNITS	 := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(UNIT_SRC))
area_of	 = $(word 2,$(subst _, ,$(notdir $(1))))

$(UNITS): $(BUILD)/tests/%: tests/unit/%.c $$(foreach a,$$(deps_$$(call area_of,$$*)),$(BUILD)/san/lib$$(a).a)
	@mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(CC) $(CPPFLAGS) -Itests/unit $(BASE_CFLAGS) -O1 $(SAN) -MMD -MP -MF $@.d $< \
		$(filter %.a,$^) -lcmocka $(libs_$(call area_of,$*)) -lpthread -o $@

# tests/bpf/t_*.c are linked with everything but the commands and run as root; t_NAME_work.cc, where
# there is one, is the C++ half of t_NAME.c.
BPFT_SRC := $(wildcard tests/bpf/t_*.c)
BPFTS	 := $(patsubst tests/bpf/%.c,$(BUILD)/tests/bpf/%,$(BPFT_SRC))
BPFT_LIBS := $(foreach a,trace out model file plan elf,$(BUILD)/lib$(a).a)
$(BUILD)/tests/bpf/%_work.o: tests/bpf/%_work.cc
	@mkdir -p $(@D)
	@echo "  CXX   $@"
	$(Q)$(CXX) -Itests/bpf -Wall -Wextra -O2 -g -MMD -MP -c $< -o $@

bpft_work = $(patsubst %.cc,$(BUILD)/%.o,$(wildcard tests/bpf/$(1)_work.cc))
$(BUILD)/tests/bpf/%: tests/bpf/%.c $$(call bpft_work,$$*) $(BPFT_LIBS) $(SKELS)
	@mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(CC) $(CPPFLAGS) -Itests/bpf $(BASE_CFLAGS) -MMD -MP -MF $@.d $< $(filter %.o,$^) \
		$(BPFT_LIBS) -lcmocka $(LDLIBS_ALL) $(if $(filter %.o,$^),-lstdc++) -o $@

# Workloads: tests/workloads/w_NAME.{c,cc,S}; cflags_w_NAME and libs_w_NAME in flags.mk.
-include tests/workloads/flags.mk
WORK_SRC := $(wildcard tests/workloads/w_*.c tests/workloads/w_*.cc)
WORKS	 := $(sort $(patsubst tests/workloads/%,$(BUILD)/tests/%,$(basename $(WORK_SRC))) $(EXTRA_WORKS))
$(BUILD)/tests/w_%: tests/workloads/w_%.c
	@mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(CC) -Iinclude -O2 -g -MMD -MP -MF $@.d $(cflags_w_$*) $< -o $@ $(libs_w_$*) -lpthread -lm
$(BUILD)/tests/w_%: tests/workloads/w_%.cc
	@mkdir -p $(@D)
	@echo "  CXX   $@"
	$(Q)$(CXX) -Iinclude -O2 -g -MMD -MP -MF $@.d $(cflags_w_$*) $< -o $@ $(libs_w_$*) -lpthread -lm

# A view on snapshots or recordings made by hand, for tests/e2e/t_NAME.py.
OUT_LIBS := $(foreach a,$(deps_out),$(BUILD)/lib$(a).a)
DRIVERS	 := $(patsubst tests/e2e/%.c,$(BUILD)/tests/%,$(wildcard tests/e2e/*_driver.c))
$(DRIVERS): $(BUILD)/tests/%: tests/e2e/%.c $(OUT_LIBS)
	@mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(CC) $(CPPFLAGS) $(BASE_CFLAGS) -MMD -MP -MF $@.d $< $(OUT_LIBS) $(libs_out) -o $@

# Made-up traces for the tests of everything that reads traces.
$(BUILD)/tests/mktrace: $(wildcard tests/tools/mktrace*.c) $(BUILD)/libfile.a
	@mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(CC) $(CPPFLAGS) -Itests/tools $(BASE_CFLAGS) $(filter %.c %.a,$^) $(libs_file) -o $@
$(BUILD)/tests/mktrace: $(wildcard tests/tools/mktrace*.h user/file/*.h)

# What the reader finds in a trace.
$(BUILD)/tests/trace_dump: tests/tools/trace_dump.c $(BUILD)/libfile.a
	@mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(CC) $(CPPFLAGS) $(BASE_CFLAGS) -MMD -MP -MF $@.d $(filter %.c %.a,$^) $(libs_file) -o $@

# The simulated CUDA libraries.
include tests/cudasim/rules.mk
include tests/cudasim/agent.mk

.PHONY: tests check setup unit
tests: all $(UNITS) $(BPFTS) $(WORKS) $(DRIVERS) $(BUILD)/tests/mktrace $(BUILD)/tests/trace_dump cudasim $(AGENT_TESTS)

setup:
	@scripts/setup.sh

unit: $(UNITS)
	tests/run.py --build $(BUILD) $(UNITS)

check:
	@scripts/setup.sh --tests
	$(MAKE) -j$$(nproc) tests
	tests/run.py --build $(BUILD)

# --- conveniences -------------------------------------------------------------------------------

.PHONY: demo demo-gpu bench check-kernels lint format install clean help
demo: setup
	$(MAKE) -j$$(nproc) all $(BUILD)/tests/w_strategy
	BUILD=$(BUILD) scripts/demo.sh

demo-gpu: setup
	$(MAKE) -j$$(nproc) all cudasim
	BUILD=$(BUILD) scripts/demo-gpu.sh

bench:
	@scripts/setup.sh --tests
	@$(MAKE) -j$$(nproc) all $(filter $(BUILD)/tests/w_bench%,$(WORKS)) \
		$(addprefix $(BUILD)/tests/,w_strategy mktrace trace_dump) >&2
	@scripts/bench.py --build $(BUILD)

check-kernels: tests
	BUILD=$(BUILD) tests/kernels/run.sh

C_FILES = $(shell git ls-files '*.c' '*.h' '*.cc')
format:
	@clang-format -i $(C_FILES)

lint:
	@clang-format --dry-run --Werror $(C_FILES)
	@cppcheck --quiet --error-exitcode=1 --inline-suppr --enable=warning,portability \
		--suppress=missingIncludeSystem '-DLIBBPF_OPTS(t,n,...)=struct t n = {0}' \
		-I. -Iinclude -Iuser user
	@command -v shellcheck >/dev/null && shellcheck scripts/*.sh tests/kernels/*.sh .ci/run || true

install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/include/qbpf
	install -m 755 $(BUILD)/qbpf $(DESTDIR)$(PREFIX)/bin/qbpf
	install -m 644 include/qbpf/probe.h $(DESTDIR)$(PREFIX)/include/qbpf/
	$(if $(AGENT),install -d $(DESTDIR)$(PREFIX)/lib/qbpf)
	$(if $(AGENT),install -m 755 $(AGENT) $(DESTDIR)$(PREFIX)/lib/qbpf/)
	set -e; for m in docs/man/*.[0-9]; do s=$${m##*.}; \
		install -d $(DESTDIR)$(PREFIX)/share/man/man$$s; \
		install -m 644 $$m $(DESTDIR)$(PREFIX)/share/man/man$$s/; done

clean:
	rm -rf $(BUILD)

help:
	@echo 'all            the qbpf command in $(BUILD)/'
	@echo 'setup          install what building and testing need (root)'
	@echo 'demo           set up, build, trace a demo strategy for a few seconds (root)'
	@echo 'demo-gpu       the same on a simulated GPU: a flaw, its cost, and the repaired program (root)'
	@echo 'check          set up, build and run all tests (root)'
	@echo 'unit           the tests that need no root'
	@echo 'check-kernels  boot 6.1 and 6.12 under emulation and run the BPF tests there'
	@echo 'bench          speed against bpftrace, as JSON (root)'
	@echo 'lint format    cppcheck and clang-format'
	@echo 'install        DESTDIR= PREFIX=$(PREFIX)'
	@echo 'clean          remove $(BUILD)/'

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
