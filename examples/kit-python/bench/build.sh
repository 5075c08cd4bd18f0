# A candidate must be valid Python; what is kept is its source.
set -eu
mkdir -p out
cp solve.py out/solve.py
exec python3 -I -c 'compile(open("out/solve.py").read(), "solve.py", "exec")'
