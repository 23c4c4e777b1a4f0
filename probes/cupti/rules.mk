# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The CUDA agent. It is linked to no CUDA library, but its constants and offsets are checked against
# the toolkit's headers, so it is built only where those are: CUDA_HOME=.

CUDA_HOME ?= $(firstword $(wildcard /usr/local/cuda /usr/local/cuda-13* /opt/cuda) /usr/local/cuda)
CUPTI_INCLUDE := $(firstword $(foreach d,include extras/CUPTI/include,$(if $(wildcard $(CUDA_HOME)/$(d)/cupti.h),$(CUDA_HOME)/$(d))))

AGENT	  := $(if $(CUPTI_INCLUDE),$(BUILD)/libqbpf_cupti.so)
AGENT_OBJ := $(patsubst %.c,$(BUILD)/%.o,$(wildcard probes/cupti/*.c))

$(BUILD)/probes/cupti/%.o: probes/cupti/%.c
	@mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(CC) -D_GNU_SOURCE -I. -Iinclude -isystem $(CUPTI_INCLUDE) -isystem $(CUDA_HOME)/include \
		$(BASE_CFLAGS) -fPIC -fvisibility=hidden -MMD -MP -c $< -o $@

# nodelete: CUPTI may return a buffer at any time.
$(BUILD)/libqbpf_cupti.so: $(AGENT_OBJ)
	@echo "  CC    $@"
	$(Q)$(CC) -shared -Wl,-soname,$(@F) -Wl,-z,nodelete,-z,now,-z,defs $^ -ldl -lpthread -o $@

.PHONY: agent
agent: $(AGENT)
ifeq ($(AGENT),)
	@echo "  SKIP  libqbpf_cupti.so: no cupti.h under $(CUDA_HOME) (CUDA_HOME=): no GPU timeline"
endif
