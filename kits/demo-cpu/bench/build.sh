#!/bin/sh
# Build the candidate's matmul.c with the kit's driver.
#
# -O1 leaves the compiler's own vectorizer out, so that a better order of the loops gains
# what it gains and not ten times as much. Functions and loops are aligned, because where
# code happens to lie in memory is worth 2 % to 3 % otherwise. No debug information, no
# build id and no symbols: sources that mean the same give the same bytes.
set -eu
mkdir -p out
exec cc -std=gnu11 -O1 -Wall -falign-functions=64 -falign-loops=64 \
    -o out/bench .kit/bench/driver.c matmul.c -s -Wl,--build-id=none
