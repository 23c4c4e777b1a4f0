# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What the tests of the CUDA agent need beside the simulated libraries.

$(BUILD)/tests/ring_dump: tests/tools/ring_dump.c $(BUILD)/libfile.a
	@mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(CC) $(CPPFLAGS) $(BASE_CFLAGS) -MMD -MP -MF $@.d $< $(BUILD)/libfile.a $(libs_file) -o $@

# Programs that know CUDA by its runtime alone, so that they run on the real one, too.
SIM_TARGETS := $(addprefix $(SIM_OUT)/,agent_target inject_target attack_target wait_target)
$(SIM_TARGETS): $(SIM_OUT)/%: tests/cudasim/%.c $(SIM_LIBS)
	@mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(CC) -isystem $(CUDA_HOME)/include -Iinclude -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -rdynamic \
		-MMD -MP -MF $@.d $< $(SIM_OUT)/libcudart.so.13 -Wl,-rpath,'$$ORIGIN' \
		-Wl,-rpath-link,$(SIM_OUT) -ldl -lrt -lutil -pthread -o $@

# Parts of the agent by themselves: with ASan and UBSan, and with TSan.
PARTS_SRC := tests/cudasim/agent_parts.c user/file/ring_status.c \
	$(patsubst %,probes/cupti/%.c,buffers records clock)
$(SIM_OUT)/agent_parts $(SIM_OUT)/agent_parts_tsan: $(PARTS_SRC) user/file/ring_reader.c \
		$(wildcard probes/cupti/*.h include/qbpf/*.h user/file/ring_reader.h)
	@mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(CC) $(CPPFLAGS) -I. -isystem $(CUDA_HOME)/include $(BASE_CFLAGS) -O1 \
		$(if $(filter %_tsan,$@),-fsanitize=thread,$(SAN)) $(PARTS_SRC) -lcmocka -pthread -o $@

AGENT_TESTS := $(if $(CUDA_HEADERS),$(BUILD)/tests/ring_dump $(SIM_TARGETS) \
	$(addprefix $(SIM_OUT)/,agent_parts agent_parts_tsan))
