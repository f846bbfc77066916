#!/bin/sh
# Clones a repository into a new sandbox and runs its tests there. The exit status is that of the tests.
set -u
sandpit=${SANDPIT:-sandpit}

usage() {
	echo "usage: clone_and_test.sh URL [--command TEXT] [--keep] [--image NAME] [--allow WHAT]... [--network MODE] [--volume NAME:PATH]" >&2
	exit 2
}

[ $# -gt 0 ] || usage
case $1 in
-*) usage ;;
esac
url=$1
shift

# What fits what is there, run in the repository.
tests='if [ -f Makefile ] && grep -q "^test:" Makefile; then echo "running: make test" >&2; make test
elif [ -f package.json ]; then echo "running: npm install, npm test" >&2; npm install && npm test
elif [ -f go.mod ]; then echo "running: go test ./..." >&2; go test ./...
elif [ -f pyproject.toml ] || [ -f setup.py ]; then echo "running: pip install -e ., pytest" >&2; pip install -q -e . && python3 -m pytest -q
else python3 -m pytest -q
fi'

n=$#
while [ "$n" -gt 0 ]; do
	option=$1
	shift
	n=$((n - 1))
	case $option in
	--keep)
		set -- "$@" --keep
		continue
		;;
	--command | --image | --allow | --network | --volume) ;;
	*) usage ;;
	esac
	[ "$n" -gt 0 ] || usage
	value=$1
	shift
	n=$((n - 1))
	case $option in
	--command) tests=$value ;;
	*) set -- "$@" "$option=$value" ;;
	esac
done

exec "$sandpit" run --no-stdin "$@" --repo="$url" --command="cd repo && { $tests
}"
