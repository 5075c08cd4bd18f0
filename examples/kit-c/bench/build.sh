set -eu
mkdir -p out
exec cc -std=c11 -O2 -falign-functions=64 -falign-loops=64 \
    -o out/bench .kit/bench/driver.c sort.c -s -Wl,--build-id=none
