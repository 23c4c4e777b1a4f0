cflags_w_funcs   := -Wno-infinite-recursion -fno-optimize-sibling-calls
libs_w_process   := -ldl
libs_w_late_fork := -L$(BUILD)/tests -l:libdl.so.9 -Wl,-rpath,'$$ORIGIN'
cflags_w_late_throw := -fexceptions
libs_w_late_throw := $(libs_w_late_fork)

# tail_caller must be a jump.
$(BUILD)/tests/w_tail: tests/workloads/w_funcs.c
	@mkdir -p $(@D)
	$(CC) -Iinclude -O2 -g -MMD -MP -MF $@.d -Wno-infinite-recursion $< -o $@ -lpthread
$(BUILD)/tests/libplugin.so: tests/workloads/plugin.c
	@mkdir -p $(@D)
	$(CC) -Iinclude -O2 -g -fPIC -shared -MMD -MP -MF $@.d $< -o $@
$(BUILD)/tests/liblate_cuda.so: tests/workloads/late_cuda.c
	@mkdir -p $(@D)
	$(CC) -O2 -g -fPIC -shared -Wall -Wextra -MMD -MP -MF $@.d $< -o $@
$(BUILD)/tests/w_late_fork $(BUILD)/tests/w_late_throw: $(BUILD)/tests/libdl.so.9
$(BUILD)/tests/libdl.so.9: tests/workloads/late_dl.c
	@mkdir -p $(@D)
	$(CC) -O2 -g -fPIC -shared -Wl,-soname,libdl.so.9 -MMD -MP -MF $@.d $< -o $@ -ldl
$(BUILD)/tests/libthrower.so: tests/workloads/thrower.cc
	@mkdir -p $(@D)
	$(CXX) -O2 -g -fPIC -shared -MMD -MP -MF $@.d $< -o $@
$(BUILD)/tests/w_switch: tests/workloads/w_funcs.c
	@mkdir -p $(@D)
	$(CC) -Iinclude -O2 -g -MMD -MP -MF $@.d -DSWITCHES $(cflags_w_funcs) $< -o $@ -lpthread
EXTRA_WORKS += $(BUILD)/tests/w_switch $(BUILD)/tests/w_tail $(BUILD)/tests/libplugin.so $(BUILD)/tests/libthrower.so $(BUILD)/tests/liblate_cuda.so

# No endbr64 at the entry of functions; and a nop5 there, which gcc has not for a PIE.
cflags_w_bench	      := -fcf-protection=none
cflags_w_bench_sdt    := -fcf-protection=none
cflags_w_bench_fentry := -fcf-protection=none -pg -mfentry -mnop-mcount -fno-pie
libs_w_bench_fentry   := -no-pie
cflags_w_bench_throw  := -fcf-protection=none
libs_w_bench_throw    := -Wl,--no-as-needed -lstdc++
