# SPDX-License-Identifier: MIT
#
# make demo   build everything and let the load client of the examples loose on the server of the examples
# make test   run every test there is, those for Linux on arm64 and for Windows by qemu and Wine; WEFT_TEST_SCALE=N makes them N times longer
# make bench  compare with other schedulers; BENCH_JSON=FILE writes the numbers there too
# make clean  remove what was built

export BENCH_JSON WEFT_TEST_SCALE

.PHONY: demo test bench clean
demo:
	@scripts/deps demo
	@scripts/demo
test:
	@scripts/deps test
	@tests/run
bench:
	@scripts/deps bench
	@bench/run
clean:
	rm -rf build
