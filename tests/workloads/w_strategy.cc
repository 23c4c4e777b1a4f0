/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The demo strategy: quotes are parsed, update an order book, become a signal, pass risk checks
 * and turn into orders, each step a span. Says "ready PID" when every thread runs, and at the end
 * (after --seconds or --ticks, or on SIGTERM or SIGINT) how often each span really ran:
 *
 *	count PROVIDER:NAME N		a span
 *	func NAME N			a call of a function that is not inlined
 *	value PROVIDER:NAME N SUM	a number that was given to QBPF_VALUE, and the sum of them
 *	caught N			exceptions
 */
#include <atomic>
#include <chrono>
#include <climits>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <getopt.h>
#include <time.h>
#include <unistd.h>

#include "qbpf/probe.h"

#define NOINLINE __attribute__((noinline))

namespace strategy
{

enum counter {
	C_TICK,
	C_PARSE,
	C_UPDATE,
	C_ALPHA,
	C_REFIT,
	C_CHECK,
	C_SEND,
	C_ENCODE,
	N_COUNTERS,
};

const char *const counter_names[N_COUNTERS] = {
    "strategy:tick", "feed:parse", "book:update", "signal:alpha",
    "signal:refit",  "risk:check", "order:send",  "order:encode",
};

struct counts {
	uint64_t n[N_COUNTERS] = {};
	uint64_t edges = 0, sizes = 0, caught = 0, limits = 0, levels = 0;
	double edge_sum = 0;
	int64_t size_sum = 0;

	void add(const counts &o)
	{
		for (int i = 0; i < N_COUNTERS; i++)
			n[i] += o.n[i];
		edges += o.edges;
		sizes += o.sizes;
		caught += o.caught;
		limits += o.limits;
		levels += o.levels;
		edge_sum += o.edge_sum;
		size_sum += o.size_sum;
	}
};

std::atomic<bool> stopping{false};

struct quote {
	uint32_t symbol;
	int side; /* +1 bid, -1 ask */
	double price;
	int size;
};

class rejected : public std::runtime_error
{
      public:
	explicit rejected(const char *why) : std::runtime_error(why)
	{
	}
};

/* Each thread trades on its own: its generator, book, position and counters. */
class trader
{
      public:
	explicit trader(unsigned int seed) : state_(seed * 2654435761u + 1)
	{
		for (int i = 0; i < LEVELS; i++)
			bids_[i] = asks_[i] = 100.0;
	}
	void tick();
	const counts &totals() const
	{
		return c_;
	}

      private:
	static const int LEVELS = 64;

	uint32_t random();
	quote parse();
	bool update(const quote &q);
	double alpha(const quote &q);
	void refit();
	void check(const quote &q, double edge);
	void check_limits(int size, double price);
	void send(const quote &q, double edge);
	size_t encode(const quote &q, char *out, size_t len);

	counts c_;
	uint32_t state_;
	double bids_[LEVELS], asks_[LEVELS];
	double weights_[LEVELS] = {};
	int64_t position_ = 0;
	uint64_t sent_ = 0;
};

uint32_t trader::random()
{
	state_ ^= state_ << 13;
	state_ ^= state_ >> 17;
	state_ ^= state_ << 5;
	return state_;
}

NOINLINE quote trader::parse()
{
	QBPF_SPAN(feed, parse);
	c_.n[C_PARSE]++;
	char line[64];
	quote q;
	int side = random() & 1 ? 1 : -1;
	snprintf(line, sizeof(line), "%u %d %.2f %d", random() % 16, side,
		 100.0 + static_cast<int>(random() % 200) / 100.0 - 1.0,
		 1 + static_cast<int>(random() % 100));
	char *p = line;
	q.symbol = static_cast<uint32_t>(strtoul(p, &p, 10));
	q.side = static_cast<int>(strtol(p, &p, 10));
	q.price = strtod(p, &p);
	q.size = static_cast<int>(strtol(p, &p, 10));
	return q;
}

NOINLINE bool trader::update(const quote &q)
{
	QBPF_SPAN(book, update);
	c_.n[C_UPDATE]++;
	double *side = q.side > 0 ? bids_ : asks_;
	for (int i = 0; i < LEVELS; i++) {
		c_.levels++;
		if (side[i] == q.price)
			return false; /* a span ends on every way out */
	}
	memmove(side + 1, side, sizeof(*side) * (LEVELS - 1));
	side[0] = q.price;
	return true;
}

/* The slow path that a live histogram should find: about one tick in 500. */
NOINLINE void trader::refit()
{
	QBPF_SPAN(signal, refit);
	c_.n[C_REFIT]++;
	for (int round = 0; round < 100; round++)
		for (int i = 0; i < LEVELS; i++)
			weights_[i] =
			    0.9 * weights_[i] + 0.1 * std::sin(bids_[i] - asks_[i] + round);
}

NOINLINE double trader::alpha(const quote &q)
{
	QBPF_SPAN(signal, alpha);
	c_.n[C_ALPHA]++;
	if (random() % 500 == 0)
		refit();
	double edge = 0;
	for (int i = 0; i < LEVELS; i++)
		edge += (weights_[i] + 0.01) * (asks_[i] - bids_[i]) / (i + 1);
	edge *= q.side;
	/* a whole number of ticks, so that the sum of them is exact */
	edge = std::nearbyint(edge * 64) / 64;
	QBPF_VALUE(signal, edge, edge);
	c_.edges++;
	c_.edge_sum += edge;
	return edge;
}

NOINLINE void trader::check_limits(int size, double price)
{
	c_.limits++;
	if (size * price > 9900)
		throw rejected("notional");
	if (std::llabs(position_ + size) > 1000000)
		position_ = 0;
}

NOINLINE void trader::check(const quote &q, double edge)
{
	QBPF_SPAN(risk, check);
	c_.n[C_CHECK]++;
	if (!std::isfinite(edge))
		throw rejected("edge");
	check_limits(q.size, q.price);
}

NOINLINE size_t trader::encode(const quote &q, char *out, size_t len)
{
	QBPF_SPAN(order, encode);
	c_.n[C_ENCODE]++;
	int n = snprintf(out, len, "8=FIX.4.4|35=D|55=%u|54=%d|44=%.2f|38=%d|", q.symbol,
			 q.side > 0 ? 1 : 2, q.price, q.size);
	return n > 0 ? static_cast<size_t>(n) : 0;
}

NOINLINE void trader::send(const quote &q, double edge)
{
	QBPF_SPAN(order, send);
	c_.n[C_SEND]++;
	char message[128];
	size_t len = encode(q, message, sizeof(message));
	position_ += q.side * q.size;
	sent_ += len;
	int size = q.side * q.size;
	QBPF_VALUE(order, size, size);
	c_.sizes++;
	c_.size_sum += size;
	if (QBPF_ENABLED(order, sent))
		DTRACE_PROBE3(order, sent, message, len, edge);
}

NOINLINE void trader::tick()
{
	QBPF_SPAN(strategy, tick);
	c_.n[C_TICK]++;
	quote q = parse();
	if (!update(q))
		return;
	double edge = alpha(q);
	try {
		check(q, edge);
		if (std::fabs(edge) > 0.02)
			send(q, edge);
	} catch (const rejected &) {
		c_.caught++;
	}
}

struct options {
	double seconds = 0;
	double rate = 1000;
	uint64_t ticks = 0;
	unsigned int threads = 1;
};

int64_t now_ns()
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

void sleep_until(int64_t ns)
{
	struct timespec ts;
	ts.tv_sec = ns / 1000000000;
	ts.tv_nsec = ns % 1000000000;
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, nullptr);
}

void run(trader *t, const options &o)
{
	int64_t next = now_ns();
	for (uint64_t i = 0; !stopping && (!o.ticks || i < o.ticks); i++) {
		t->tick();
		if (o.rate <= 0)
			continue;
		next += static_cast<int64_t>(1e9 / o.rate);
		if (next > now_ns())
			sleep_until(next);
	}
}

void on_signal(int)
{
	stopping = true;
}

void print(const counts &c)
{
	for (int i = 0; i < N_COUNTERS; i++)
		printf("count %s %llu\n", counter_names[i],
		       static_cast<unsigned long long>(c.n[i]));
	printf("func strategy::trader::check_limits %llu\n",
	       static_cast<unsigned long long>(c.limits));
	printf("func strategy::trader::refit %llu\n",
	       static_cast<unsigned long long>(c.n[C_REFIT]));
	printf("value signal:edge %llu %.17g\n", static_cast<unsigned long long>(c.edges),
	       c.edge_sum);
	printf("value order:size %llu %lld\n", static_cast<unsigned long long>(c.sizes),
	       static_cast<long long>(c.size_sum));
	printf("caught %llu\n", static_cast<unsigned long long>(c.caught));
}

} // namespace strategy

static double number(const char *s, const char *what)
{
	char *end;
	double v = strtod(s, &end);
	if (end == s || *end || !(v >= 0) || v > 1e12) {
		fprintf(stderr, "w_strategy: bad %s '%s'\n", what, s);
		exit(2);
	}
	return v;
}

int main(int argc, char **argv)
{
	using namespace strategy;
	static const struct option longs[] = {
	    {"seconds", required_argument, nullptr, 's'},
	    {"rate", required_argument, nullptr, 'r'},
	    {"ticks", required_argument, nullptr, 'n'},
	    {"threads", required_argument, nullptr, 't'},
	    {nullptr, 0, nullptr, 0},
	};
	options o;
	int c;
	while ((c = getopt_long(argc, argv, "s:r:n:t:", longs, nullptr)) != -1) {
		switch (c) {
		case 's':
			o.seconds = number(optarg, "--seconds");
			break;
		case 'r':
			o.rate = number(optarg, "--rate");
			break;
		case 'n':
			o.ticks = static_cast<uint64_t>(number(optarg, "--ticks"));
			break;
		case 't':
			o.threads = static_cast<unsigned int>(number(optarg, "--threads"));
			break;
		default:
			fprintf(stderr,
				"usage: w_strategy [--seconds N] [--rate N (per thread and second, "
				"0: flat out)] [--ticks N (per thread)] [--threads N]\n");
			return 2;
		}
	}
	if (optind < argc || o.threads < 1 || o.threads > 1024) {
		fprintf(stderr, "w_strategy: bad arguments\n");
		return 2;
	}
	setvbuf(stdout, nullptr, _IOLBF, 0);
	struct sigaction sa;
	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = on_signal;
	sigaction(SIGTERM, &sa, nullptr);
	sigaction(SIGINT, &sa, nullptr);

	std::vector<trader> traders;
	for (unsigned int i = 0; i < o.threads; i++)
		traders.emplace_back(i + 1);
	std::vector<std::thread> threads;
	std::atomic<unsigned int> running{o.threads};
	for (trader &t : traders)
		threads.emplace_back([&t, &o, &running] {
			run(&t, o);
			running--;
		});
	printf("ready %d\n", static_cast<int>(getpid()));
	int64_t end = o.seconds > 0 ? now_ns() + static_cast<int64_t>(o.seconds * 1e9) : INT64_MAX;
	while (!stopping && running && now_ns() < end)
		usleep(10000);
	stopping = true;
	counts total;
	for (std::thread &t : threads)
		t.join();
	for (const trader &t : traders)
		total.add(t.totals());
	print(total);
	return 0;
}
