# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The simulated CUDA libraries, under the real names, and their tests: see README.md. They are built
# where the toolkit's headers are (CUDA_HOME=), and left out otherwise.

CUDA_HOME ?= $(firstword $(wildcard /usr/local/cuda /usr/local/cuda-13* /opt/cuda) /usr/local/cuda)
CUDA_HEADERS := $(and $(wildcard $(CUDA_HOME)/include/cupti.h),$(wildcard $(CUDA_HOME)/include/cuda_runtime_api.h))

SIM_OUT	  := $(BUILD)/tests/cudasim
SIM_DIR	  := tests/cudasim
SIM_LIBS  := $(SIM_OUT)/libcuda.so.1 $(SIM_OUT)/libcudart.so.13 $(SIM_OUT)/libcupti.so.13
SIM_CORE  := config clock truth call memory kernels timeline ops graph
SIM_CUDA  := $(SIM_CORE) driver_device driver_memory driver_stream driver_launch driver_graph
SIM_CUDART := runtime_device runtime_memory runtime_stream runtime_launch runtime_graph
SIM_CUPTI := cupti_records cupti_buffers cupti_callbacks cupti_api
# The bodies of entry points do not use all that their prototypes have.
SIM_CFLAGS = -isystem $(CUDA_HOME)/include -I$(SIM_OUT) -D_GNU_SOURCE -std=gnu11 $(WARN) -Wno-unused-parameter \
	-O2 -g -fPIC -pthread

$(SIM_OUT)/%.o: $(SIM_DIR)/%.c
	@mkdir -p $(@D)
	@echo "  CC    $@"
	$(Q)$(CC) $(SIM_CFLAGS) -MMD -MP -c $< -o $@

# Names of the callback ids, for cuptiGetCallbackName.
$(SIM_OUT)/cudasim_%_names.h: $(CUDA_HOME)/include/cupti_%_cbid.h
	@mkdir -p $(@D)
	@echo "  GEN   $@"
	$(Q)sed -n 's/^ *CUPTI_[A-Z]*_TRACE_CBID_\(_*cu[A-Za-z0-9_]*\) *= *\([0-9]*\),.*/[\2] = "\1",/p' $< > $@

$(SIM_OUT)/cupti_callbacks.o: $(SIM_OUT)/cudasim_runtime_names.h $(SIM_OUT)/cudasim_driver_names.h

sim_link = $(Q)$(CC) -shared -pthread -Wl,-soname,$(@F) -Wl,--version-script,$(filter %.map,$^) \
	-Wl,-rpath,'$$ORIGIN' -Wl,-z,defs $(filter %.o,$^) $(filter %.so.1,$^) -ldl -o $@

$(SIM_OUT)/libcuda.so.1: $(SIM_CUDA:%=$(SIM_OUT)/%.o) $(SIM_DIR)/libcuda.map
	@echo "  CC    $@"
	$(sim_link)
$(SIM_OUT)/libcudart.so.13: $(SIM_CUDART:%=$(SIM_OUT)/%.o) $(SIM_DIR)/libcudart.map $(SIM_OUT)/libcuda.so.1
	@echo "  CC    $@"
	$(sim_link)
$(SIM_OUT)/libcupti.so.13: $(SIM_CUPTI:%=$(SIM_OUT)/%.o) $(SIM_DIR)/libcupti.map $(SIM_OUT)/libcuda.so.1
	@echo "  CC    $@"
	$(sim_link)

# Programs: linked with the simulator, and found to run on the real libraries by LD_LIBRARY_PATH.
# What they export is what the simulated kernels do.
SIM_PROGS := $(SIM_OUT)/sim_probe $(SIM_OUT)/libsim_inject.so $(BUILD)/tests/w_quant_gpu
$(SIM_OUT)/libsim_inject.so: $(SIM_OUT)/sim_inject.o
	$(Q)$(CC) -shared $< -o $@
$(SIM_OUT)/sim_probe: $(SIM_OUT)/sim_probe.o $(SIM_OUT)/sim_client.o $(SIM_LIBS)
	@echo "  CC    $@"
	$(Q)$(CC) -pthread -rdynamic $(filter %.o,$^) $(SIM_LIBS) -Wl,--enable-new-dtags \
		-Wl,-rpath,'$$ORIGIN' -o $@
$(BUILD)/tests/w_quant_gpu: tests/workloads/quant_gpu.c $(SIM_LIBS)
	@echo "  CC    $@"
	$(Q)$(CC) -isystem $(CUDA_HOME)/include -Iinclude -D_GNU_SOURCE $(WARN) -O2 -g -MMD -MP -MF $@.d -rdynamic $< \
		-L$(SIM_OUT) -l:libcudart.so.13 -Wl,-rpath-link,$(SIM_OUT) -Wl,--enable-new-dtags \
		-Wl,-rpath,'$$ORIGIN/cudasim' -o $@

.PHONY: cudasim
ifeq ($(CUDA_HEADERS),)
cudasim:
	@echo "  SKIP  tests/cudasim: no CUDA headers in $(CUDA_HOME)/include (CUDA_HOME=)"
else
cudasim: $(SIM_LIBS) $(SIM_PROGS)
endif
