/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* cupti_callbacks.c - subscribing, and callbacks inside calls */
#include <stdio.h>

#include "cupti_sim.h"

#define CBIDS 1024

struct CUpti_Subscriber_st {
	_Atomic(CUpti_CallbackFunc) fn;
	_Atomic(void *) user;
	_Atomic bool active;
	_Atomic bool on[3][CBIDS];
};

static struct CUpti_Subscriber_st subscriber;

static const char *const runtime_names[CBIDS] = {
#include "cudasim_runtime_names.h"
};
static const char *const driver_names[CBIDS] = {
#include "cudasim_driver_names.h"
};

bool callbacks_subscribed(void)
{
	return subscriber.active;
}

void callbacks_call(struct sim_call *c, CUpti_ApiCallbackSite site)
{
	CUpti_CallbackFunc fn = subscriber.fn;
	CUpti_CallbackData data;

	if (!fn || !subscriber.active || c->cbid >= CBIDS || !subscriber.on[c->domain][c->cbid])
		return;
	data = (CUpti_CallbackData){
	    .callbackSite = site,
	    .functionName = c->name,
	    .functionParams = c->params,
	    .functionReturnValue = site == CUPTI_API_EXIT ? &c->result : NULL,
	    .context = sim_self()->ctx,
	    .contextUid = sim_self()->ctx ? sim_self()->ctx->id : 0,
	    .correlationData = &c->tool_data,
	    .correlationId = c->correlation,
	};
	fn(subscriber.user, (CUpti_CallbackDomain)c->domain, c->cbid, &data);
}

void callbacks_fatal(void)
{
	CUpti_CallbackFunc fn = subscriber.fn;

	if (fn && subscriber.active)
		fn(subscriber.user, CUPTI_CB_DOMAIN_STATE, CUPTI_CBID_STATE_FATAL_ERROR, NULL);
}

static void switch_domain(size_t domain, bool on)
{
	for (size_t i = 0; i < CBIDS; i++)
		subscriber.on[domain][i] = on;
}

void callbacks_reset(void)
{
	subscriber.active = false;
	subscriber.fn = NULL;
	subscriber.user = NULL;
	switch_domain(SIM_DRIVER, false);
	switch_domain(SIM_RUNTIME, false);
}

static CUptiResult subscribe(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc fn, void *user,
			     char *rival, size_t size)
{
	int64_t err = sim_config()->subscribe;

	if (!handle)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!err && subscriber.active)
		err = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
	if (err == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED && rival && size)
		snprintf(rival, size, "CUPTI for cudasim's rival");
	if (err)
		return (CUptiResult)err;
	callbacks_reset();
	subscriber.fn = fn;
	subscriber.user = user;
	subscriber.active = true;
	*handle = &subscriber;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc fn, void *user)
{
	CUptiResult err = subscribe(handle, fn, user, NULL, 0);

	sim_truth_tool("cuptiSubscribe", 0, err);
	return err;
}

CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle *handle, CUpti_CallbackFunc fn, void *user,
			      CUpti_SubscriberParams *params)
{
	CUptiResult err;

	if (params && params->structSize != CUpti_SubscriberParams_STRUCT_SIZE)
		return CUPTI_ERROR_INVALID_PARAMETER;
	err = subscribe(handle, fn, user, params ? params->oldSubscriberName : NULL,
			params ? params->oldSubscriberSize : 0);
	sim_truth_tool("cuptiSubscribe_v2", 0, err);
	return err;
}

static bool known(CUpti_SubscriberHandle handle)
{
	return handle == &subscriber && subscriber.active;
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle handle)
{
	if (!known(handle))
		return CUPTI_ERROR_INVALID_PARAMETER;
	callbacks_reset();
	sim_truth_tool("cuptiUnsubscribe", 0, CUPTI_SUCCESS);
	return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle handle,
				CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
	if (!known(handle) || (unsigned int)domain >= CUPTI_CB_DOMAIN_SIZE || cbid >= CBIDS)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (domain == CUPTI_CB_DOMAIN_DRIVER_API || domain == CUPTI_CB_DOMAIN_RUNTIME_API)
		subscriber.on[domain][cbid] = enable;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle handle,
			      CUpti_CallbackDomain domain)
{
	if (!known(handle) || (unsigned int)domain >= CUPTI_CB_DOMAIN_SIZE)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (domain == CUPTI_CB_DOMAIN_DRIVER_API || domain == CUPTI_CB_DOMAIN_RUNTIME_API)
		switch_domain(domain, enable);
	return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle handle)
{
	CUptiResult err = cuptiEnableDomain(enable, handle, CUPTI_CB_DOMAIN_DRIVER_API);

	return err ? err : cuptiEnableDomain(enable, handle, CUPTI_CB_DOMAIN_RUNTIME_API);
}

CUptiResult cuptiGetCallbackState(uint32_t *enable, CUpti_SubscriberHandle handle,
				  CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
	if (!known(handle) || !enable || cbid >= CBIDS ||
	    (domain != CUPTI_CB_DOMAIN_DRIVER_API && domain != CUPTI_CB_DOMAIN_RUNTIME_API))
		return CUPTI_ERROR_INVALID_PARAMETER;
	*enable = subscriber.on[domain][cbid];
	return CUPTI_SUCCESS;
}

CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid, const char **name)
{
	if (!name || cbid >= CBIDS)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*name = domain == CUPTI_CB_DOMAIN_RUNTIME_API  ? runtime_names[cbid]
		: domain == CUPTI_CB_DOMAIN_DRIVER_API ? driver_names[cbid]
						       : NULL;
	return *name ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}
